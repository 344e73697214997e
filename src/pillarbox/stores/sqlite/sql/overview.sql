-- What waits and what was given up on, counted up to a limit. The age is that of the oldest which could have left: among
-- the first recorded, else the first that is ready; a delayed one ages once it is due.
WITH first AS MATERIALIZED (
  SELECT CASE WHEN held IS NULL AND available_at IS NOT NULL AND attempts + tries = 0 THEN available_at
              ELSE recorded_at END AS since
    FROM {message}
   ORDER BY recorded_at, id
   LIMIT :counted + 1
), head AS (
  SELECT recorded_at AS since FROM {message} WHERE held IS NULL AND available_at IS NULL ORDER BY id LIMIT 1
)
SELECT (SELECT count(*) FROM first),
       (SELECT round((julianday({now}) - julianday(min(since))) * 86400.0, 3)
          FROM (SELECT since FROM first WHERE since <= {now} UNION ALL SELECT since FROM head)),
       (SELECT count(*) FROM (SELECT 1 FROM {dead} LIMIT :counted + 1));
