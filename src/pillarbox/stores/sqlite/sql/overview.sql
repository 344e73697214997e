-- What waits, what was given up on and the keys that stand still, each counted up to a limit. The age is that of the oldest
-- which could have left: among the first recorded, else the first that is ready; a delayed one ages once it is due.
WITH first AS MATERIALIZED (
  SELECT id, event_id,
         CASE WHEN held IS NULL AND available_at IS NOT NULL AND attempts + tries = 0 THEN available_at
              ELSE recorded_at END AS since
    FROM {message}
   ORDER BY recorded_at, id
   LIMIT :most + 1
), head AS (
  SELECT id, event_id, recorded_at AS since
    FROM {message} WHERE held IS NULL AND available_at IS NULL ORDER BY id LIMIT 1
), oldest AS MATERIALIZED (
  SELECT since, event_id
    FROM (SELECT id, event_id, since FROM first WHERE since <= {now} UNION ALL SELECT id, event_id, since FROM head)
   ORDER BY since, id
   LIMIT 1
)
SELECT (SELECT count(*) FROM (SELECT 1 FROM {message} LIMIT :counted + 1)),
       (SELECT round((julianday({now}) - julianday(since)) * 86400.0, 3) FROM oldest),
       (SELECT count(*) FROM (SELECT 1 FROM {dead} LIMIT :most + 1)),
       (SELECT count(*) FROM (SELECT 1 FROM {message} WHERE held = 'blocked' ORDER BY recorded_at, id LIMIT :most + 1)),
       (SELECT event_id FROM oldest);
