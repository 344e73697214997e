-- Drop exactly these rows of the history.
DELETE FROM {history}
 WHERE rowid IN (SELECT h.rowid
                   FROM json_each(:rows) AS k
                   JOIN {history} AS h
                     ON h.event_id = json_extract(k.value, '$[0]') AND h.id = json_extract(k.value, '$[1]')
                    AND h.destination = json_extract(k.value, '$[2]')
                    AND h.published_at = json_extract(k.value, '$[3]'));
