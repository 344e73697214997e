-- What waits and what was given up on.
SELECT count(*),
       round((julianday({now}) - julianday(min(recorded_at))) * 86400.0, 3),
       (SELECT count(*) FROM (SELECT 1 FROM {dead} LIMIT :counted + 1))
  FROM {message};
