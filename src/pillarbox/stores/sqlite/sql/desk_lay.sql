-- Lay the messages of a write on the desk, by place: [[id, destination, new destination, outcome, charge, delay, error], …].
-- A copy is found by the place it shares, every other message by its row.
INSERT INTO temp.desk (row_id, destination, outcome, charge, delay, error)
SELECT m.row_id, v.destination, v.outcome, v.charge, v.delay, v.error
  FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS waits_for,
               json_extract(value, '$[2]') AS destination, json_extract(value, '$[3]') AS outcome,
               json_extract(value, '$[4]') AS charge, json_extract(value, '$[5]') AS delay,
               json_extract(value, '$[6]') AS error
          FROM json_each(:messages)) AS v
 CROSS JOIN {message} AS m
 WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c
                             WHERE c.place = v.id AND c.destination = v.waits_for), v.id)
   AND m.id = v.id AND m.destination = v.waits_for;
