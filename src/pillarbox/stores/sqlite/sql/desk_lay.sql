-- Lay the messages of a write on the desk, by place: [[id, destination, new destination, outcome, charge, noted,
-- delay, error, attempts, tries, seconds], …]. What was counted before, so that only the answer was lost, is not counted again.
-- A copy is found by the place it shares, every other message by its row.
INSERT INTO temp.desk (row_id, destination, outcome, charge, noted, delay, error, seconds)
SELECT m.row_id, v.destination, v.outcome, v.charge, v.noted, v.delay, v.error, v.seconds
  FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS waits_for,
               json_extract(value, '$[2]') AS destination, json_extract(value, '$[3]') AS outcome,
               json_extract(value, '$[4]') AS charge, json_extract(value, '$[5]') AS noted,
               json_extract(value, '$[6]') AS delay, json_extract(value, '$[7]') AS error,
               json_extract(value, '$[8]') AS attempts, json_extract(value, '$[9]') AS tries,
               json_extract(value, '$[10]') AS seconds
          FROM json_each(:messages)) AS v
 CROSS JOIN {message} AS m
 WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c
                             WHERE c.place = v.id AND c.destination = v.waits_for), v.id)
   AND m.id = v.id AND m.destination = v.waits_for
   AND (v.attempts IS NULL OR (m.attempts = v.attempts AND m.tries = v.tries));
