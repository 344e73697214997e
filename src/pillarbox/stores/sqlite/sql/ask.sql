-- Ask the lane's owner for something, for each event of a list.
INSERT INTO {request} (action, event_id, destination, delay, asked_by, act)
SELECT :action, json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]'), :delay, :by, :act
  FROM json_each(:events) AS e
 ORDER BY e.key
RETURNING request_id;
