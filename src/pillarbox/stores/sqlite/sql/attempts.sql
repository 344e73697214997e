-- Remember every send that failed.
INSERT INTO {attempt} (event_id, destination, attempt, charged, error, seconds)
SELECT m.event_id, d.destination, m.attempts + m.tries + 1 - d.noted, d.charge, d.error, d.seconds
  FROM temp.desk AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND (d.outcome = 'retry' OR (d.outcome IN ('dead', 'blocked') AND d.charge));
