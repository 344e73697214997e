-- What of these was sent before, and of which this very send was begun and never settled.
SELECT p.event_id, p.destination, CASE p.status WHEN 'SUCCESS' THEN 'sent' ELSE 'unknown' END
  FROM json_each(:messages) AS asked
 CROSS JOIN {processed_event} AS p
 WHERE p.event_id = json_extract(asked.value, '$[0]') AND p.destination = json_extract(asked.value, '$[1]')
   AND (p.status = 'SUCCESS' OR (p.status = 'PROCESSING' AND p.begun = json_extract(asked.value, '$[2]')));
