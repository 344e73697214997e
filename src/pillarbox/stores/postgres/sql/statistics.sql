-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT $1, i.destination, i.statistics::jsonb FROM unnest($2::text[], $3::text[]) AS i(destination, statistics)

-- name: recorded_so_far
-- The last number drawn for a message, from its sequence: this reads no table. A role without the right to see it gets 0.
SELECT coalesce(CASE WHEN has_sequence_privilege(s.name, 'SELECT') THEN pg_sequence_last_value(s.name::regclass) END, 0)
FROM (SELECT pg_get_serial_sequence('{message}', 'id') AS name) AS s

-- name: overview
-- Count pending events, dead letters and blocked keys, each up to a limit; beyond the limit, pending events are the server's
-- own count or estimate. The age is that of the oldest event that could have been sent: among the first recorded, else
-- the first of each lane; a delayed event ages once it is due.
WITH first AS MATERIALIZED (
  SELECT id, event_id,
         {clamp_time}(CASE WHEN held IS NULL AND available_at IS NOT NULL AND attempts + deferrals = 0 THEN available_at
                         ELSE recorded_at END) AS since
  FROM {message} ORDER BY recorded_at, id LIMIT :most::int + 1
), looked AS MATERIALIZED (
  SELECT count(*) AS waiting, count(*) <= :most::int AS complete FROM first
), oldest AS MATERIALIZED (
  SELECT since, event_id FROM (
    SELECT id, event_id, since FROM first WHERE since <= now()
    UNION ALL
    SELECT head.id, head.event_id, head.recorded_at
    FROM {lane} n CROSS JOIN LATERAL (
      SELECT x.id, x.event_id, {clamp_time}(x.recorded_at) AS recorded_at FROM {message} x
      WHERE x.lane = n.lane AND x.held IS NULL AND x.available_at IS NULL ORDER BY x.id LIMIT 1) AS head
    WHERE NOT (SELECT complete FROM looked)
  ) AS due ORDER BY since, id LIMIT 1
), counted AS MATERIALIZED (
  SELECT CASE WHEN l.complete OR :counted::bigint <= :most::int THEN l.waiting
              ELSE (SELECT count(*) FROM (SELECT FROM {message} LIMIT :counted::bigint + 1) AS w) END AS waiting
  FROM looked l
)
SELECT CASE WHEN c.waiting <= :counted::bigint THEN c.waiting
            ELSE greatest(c.waiting, coalesce(nullif(pg_stat_get_live_tuples('{message}'::regclass), 0), (
              SELECT reltuples::bigint FROM pg_class WHERE oid = '{message}'::regclass))) END,
       extract(epoch FROM now() - (SELECT since FROM oldest))::float8,
       c.waiting <= :counted::bigint,
       (SELECT count(*) FROM (SELECT FROM {dead_letter} LIMIT :most::int + 1) AS d),
       (SELECT count(*) FROM (SELECT FROM {message} WHERE held = 'blocked' ORDER BY recorded_at, id LIMIT :most::int + 1) AS b),
       (SELECT event_id FROM oldest),
       ({recorded_so_far})
FROM counted c
