-- What waits and what was given up on: counted up to a limit; beyond it the planner's own estimate and the lanes' heads.
WITH counted AS MATERIALIZED (
  SELECT count(*) AS waiting, min(recorded_at) AS oldest, count(*) <= $1::int AS exact
  FROM (SELECT recorded_at FROM {message} LIMIT $1::int + 1) AS sample
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
