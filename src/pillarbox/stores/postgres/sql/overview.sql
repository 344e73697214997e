-- What waits, what was given up on and the keys that stand still, each counted up to a limit; beyond it, what waits is
-- what the server has counted itself, or else estimated. The age is that of the oldest which could have left: among the
-- first recorded, else the first of each lane; a delayed one ages once it is due.
WITH first AS MATERIALIZED (
  SELECT id, event_id,
         {readable}(CASE WHEN held IS NULL AND available_at IS NOT NULL AND attempts + tries = 0 THEN available_at
                         ELSE recorded_at END) AS since
  FROM {message} ORDER BY recorded_at, id LIMIT $2::int + 1
), looked AS MATERIALIZED (
  SELECT count(*) AS waiting, count(*) <= $2::int AS complete FROM first
), oldest AS MATERIALIZED (
  SELECT since, event_id FROM (
    SELECT id, event_id, since FROM first WHERE since <= now()
    UNION ALL
    SELECT head.id, head.event_id, head.recorded_at
    FROM {lane} n CROSS JOIN LATERAL (
      SELECT x.id, x.event_id, {readable}(x.recorded_at) AS recorded_at FROM {message} x
      WHERE x.lane = n.lane AND x.held IS NULL AND x.available_at IS NULL ORDER BY x.id LIMIT 1) AS head
    WHERE NOT (SELECT complete FROM looked)
  ) AS due ORDER BY since, id LIMIT 1
), counted AS MATERIALIZED (
  SELECT CASE WHEN l.complete OR $1::bigint <= $2::int THEN l.waiting
              ELSE (SELECT count(*) FROM (SELECT FROM {message} LIMIT $1::bigint + 1) AS w) END AS waiting
  FROM looked l
)
SELECT CASE WHEN c.waiting <= $1::bigint THEN c.waiting
            ELSE greatest(c.waiting, coalesce(nullif(pg_stat_get_live_tuples('{message}'::regclass), 0), (
              SELECT reltuples::bigint FROM pg_class WHERE oid = '{message}'::regclass))) END,
       extract(epoch FROM now() - (SELECT since FROM oldest))::float8,
       c.waiting <= $1::bigint,
       (SELECT count(*) FROM (SELECT FROM {dead} LIMIT $2::int + 1) AS d),
       (SELECT count(*) FROM (SELECT FROM {message} WHERE held = 'blocked' ORDER BY recorded_at, id LIMIT $2::int + 1) AS b),
       (SELECT event_id FROM oldest)
FROM counted c
