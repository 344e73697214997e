-- Fragment: what was delivered, as the desk would have it, straight from {"destination so far": {"new destination": {"seconds": [id, …]}}};
-- nothing under another epoch: whoever writes locks everybody out before the first row. How a place is found see desk_lay.sql.
(SELECT m.row_id, d.key AS destination, 'delivered' AS outcome, CAST(nullif(s.key, 'null') AS REAL) AS seconds
   FROM json_each(:delivered) AS w
  CROSS JOIN json_each(w.value) AS d
  CROSS JOIN json_each(d.value) AS s
  CROSS JOIN json_each(s.value) AS i
  CROSS JOIN {message} AS m
  WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c WHERE c.place = i.value AND c.destination = w.key), i.value)
    AND m.id = i.value AND m.destination = w.key
    AND (SELECT l.epoch FROM {lane} AS l WHERE l.lane = 0) = :epoch)
