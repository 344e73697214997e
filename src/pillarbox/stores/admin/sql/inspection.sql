-- name: overview
-- Count pending messages, dead letters and blocked keys, each up to a limit, and find the oldest pending message. Indexes and
-- estimates of pending messages differ so much that each engine has its own search.
WITH {backlog_and_oldest}
SELECT b.pending, {age_of_oldest}, b.exact,
       (SELECT count(*) FROM (SELECT 1 FROM {dead_letter} LIMIT :beyond) AS dead),
       (SELECT count(*)
          FROM (SELECT 1 FROM {message} WHERE {is_blocked} ORDER BY recorded_at, id LIMIT :beyond) AS held),
       (SELECT event_id FROM oldest),
       ({recorded_so_far})
  FROM backlog AS b

-- name: statistics_since
-- Read the samples of the last :seconds, the newest first, up to a limit.
SELECT at, relay, destination, statistics{as_text} FROM {sample} WHERE at >= {ago:seconds} ORDER BY at DESC LIMIT :most

-- name: overview_lanes
-- List every lane and its owner.
SELECT lane, owner, epoch, crashes FROM {lane} ORDER BY lane

-- name: overview_relays
-- List every relay: the time left of its lease, its breakers, its age, what has been in flight for long.
SELECT id, name, host, {lease_left}, breakers{as_text}, version, {relay_age}, {json_length}(in_flight),
       drain_requested_by IS NOT NULL, stalled
  FROM {relay}
 ORDER BY id

-- name: list_consumers
-- List the consumers that have inbox records or statistics, by name: their records, counted up to a limit, and their latest
-- statistics.
WITH RECURSIVE {consumer_names}, known AS (
  SELECT consumer FROM named WHERE consumer IS NOT NULL LIMIT :limit
)
SELECT c.consumer,
       {inbox_records},
       CAST(sum(c.processed) AS {bigint_type}), CAST(sum(c.duplicates) AS {bigint_type}), CAST(sum(c.failures) AS {bigint_type}),
       CAST(sum(c.dead_lettered) AS {bigint_type}), max(CASE WHEN c.latest = 1 THEN c.last_error END), max(c.last_failed_at)
  FROM (SELECT k.consumer, t.processed, t.duplicates, t.failures, t.dead_lettered, t.last_error, t.last_failed_at,
               row_number() OVER (PARTITION BY k.consumer ORDER BY t.last_failed_at IS NULL, t.last_failed_at DESC) AS latest
          FROM known AS k
          LEFT JOIN {recent_statistics}) AS c
 GROUP BY c.consumer
 ORDER BY c.consumer

-- fragment: consumers_by_hops
-- The names of consumers: one hop along the indexes per name.
named AS (
  SELECT min(consumer) AS consumer
    FROM (SELECT min(consumer) AS consumer FROM {inbox} UNION ALL SELECT min(consumer) FROM {inbox_statistics}) AS first
  UNION ALL
  SELECT (SELECT min(consumer)
            FROM (SELECT min(r.consumer) AS consumer FROM {inbox} AS r WHERE r.consumer > n.consumer
                  UNION ALL
                  SELECT min(t.consumer) FROM {inbox_statistics} AS t WHERE t.consumer > n.consumer) AS next)
    FROM named AS n WHERE n.consumer IS NOT NULL
)

-- fragment: records_up_to_most
-- The inbox records of consumer c, up to :most. They are counted in the order of their index, because PostgreSQL would otherwise
-- search the table for a rare consumer.
(SELECT count(*) FROM (SELECT 1 FROM {inbox} AS r WHERE r.consumer = c.consumer ORDER BY r.event_id LIMIT :most) AS counted)
