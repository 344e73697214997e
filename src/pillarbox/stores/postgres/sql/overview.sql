-- What waits and what was given up on: counted up to a limit, beyond it the planner's own estimate. The age is that of the
-- oldest which could have left: among the first recorded, else the first of each lane; a delayed one ages once it is due.
WITH first AS MATERIALIZED (
  SELECT recorded_at,
         CASE WHEN held IS NULL AND available_at IS NOT NULL AND attempts + tries = 0 THEN available_at
              ELSE recorded_at END AS since
  FROM {message} ORDER BY recorded_at, id LIMIT $1::int + 1
), counted AS MATERIALIZED (
  SELECT count(*) AS waiting, min(since) FILTER (WHERE since <= now()) AS oldest, count(*) <= $1::int AS exact FROM first
)
SELECT CASE WHEN c.exact THEN c.waiting
            ELSE greatest(c.waiting, (SELECT reltuples::bigint FROM pg_class WHERE oid = '{message}'::regclass)) END,
       extract(epoch FROM now() - CASE WHEN c.exact THEN c.oldest ELSE least(c.oldest, (
         SELECT min(head.recorded_at)
         FROM {lane} l CROSS JOIN LATERAL (
           SELECT x.recorded_at FROM {message} x
           WHERE x.lane = l.lane AND x.held IS NULL AND x.available_at IS NULL ORDER BY x.id LIMIT 1) AS head)) END)::float8,
       c.exact,
       (SELECT count(*) FROM (SELECT FROM {dead} LIMIT $1::int + 1) AS d)
FROM counted c
