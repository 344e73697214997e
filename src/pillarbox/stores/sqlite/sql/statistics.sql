-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT :relay, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:statistics)

-- name: recorded_so_far
-- The last number drawn for a message.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{prefix}message'), 0)

-- name: overview
-- Count pending events, dead letters and blocked keys, each up to a limit. The age is that of the oldest event that could have
-- been sent: the first recorded that is not delayed, the first delayed one that is due, or the first that is ready. Each
-- is searched among so many rows, and the search ends with the first found: a relay asks while the backlog is large.
WITH oldest AS MATERIALIZED (
  SELECT since, event_id
    FROM (SELECT * FROM (SELECT id, event_id, recorded_at AS since
                           FROM (SELECT id, event_id, recorded_at,
                                        held IS NULL AND available_at IS NOT NULL AND attempts + deferrals = 0 AS delayed
                                   FROM {message} ORDER BY recorded_at, id LIMIT :most + 1)
                          WHERE NOT delayed AND recorded_at <= {now}
                          LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT id, event_id, available_at
                           FROM (SELECT id, event_id, available_at, attempts + deferrals AS failures
                                   FROM {message}
                                  WHERE held IS NULL AND available_at IS NOT NULL AND available_at <= {now}
                                  ORDER BY available_at, id LIMIT :most + 1)
                          WHERE failures = 0
                          LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT id, event_id, recorded_at
                           FROM {message} WHERE held IS NULL AND available_at IS NULL ORDER BY id LIMIT 1))
   ORDER BY since, id
   LIMIT 1
)
SELECT w.pending,
       (SELECT round((julianday({now}) - julianday(since)) * 86400.0, 3) FROM oldest),
       w.pending <= :counted,
       (SELECT count(*) FROM (SELECT 1 FROM {dead_letter} LIMIT :most + 1)),
       (SELECT count(*) FROM (SELECT 1 FROM {message} WHERE held = 'blocked' ORDER BY recorded_at, id LIMIT :most + 1)),
       (SELECT event_id FROM oldest),
       ({recorded_so_far})
  FROM (SELECT count(*) AS pending FROM (SELECT 1 FROM {message} LIMIT :counted + 1)) AS w

-- name: overview_lanes
-- List every lane and its owner.
SELECT lane, owner, epoch, crashes FROM {lane} ORDER BY lane

-- name: overview_relays
-- List every relay: the time left of its lease, its breakers, its age, what has been in flight for long.
SELECT id, name, host,
       round(CASE WHEN {lease_is_valid} THEN coalesce(lease_end - elapsed(),
                                                  (julianday(lease_until) - julianday({now})) * 86400.0)
                  ELSE 0.0 END, 3), breakers, version,
       round((julianday({now}) - julianday(started_at)) * 86400.0, 3), json_array_length(in_flight), drain_requested_by IS NOT NULL, stalled
  FROM {relay} ORDER BY id

-- name: list_consumers
-- List the consumers that have inbox records or statistics, by name: their records, counted up to a limit, and their latest
-- statistics. One hop along the indexes per name. The last error is that of the row with the latest failure: SQLite takes
-- the other columns from the row that has the max().
WITH RECURSIVE named AS (
  SELECT min(consumer) AS consumer
    FROM (SELECT min(consumer) AS consumer FROM {inbox} UNION ALL SELECT min(consumer) FROM {inbox_statistics})
  UNION ALL
  SELECT (SELECT min(consumer)
            FROM (SELECT min(r.consumer) AS consumer FROM {inbox} r WHERE r.consumer > n.consumer
                  UNION ALL
                  SELECT min(t.consumer) FROM {inbox_statistics} t WHERE t.consumer > n.consumer))
  FROM named n WHERE n.consumer IS NOT NULL
), known AS (
  SELECT consumer FROM named WHERE consumer IS NOT NULL LIMIT :limit
)
SELECT k.consumer, (SELECT count(*) FROM (SELECT 1 FROM {inbox} r WHERE r.consumer = k.consumer LIMIT :most)),
       sum(t.processed), sum(t.duplicates), sum(t.failures), sum(t.dead_lettered), t.last_error, max(t.last_failed_at)
FROM known k
LEFT JOIN {inbox_statistics} t ON t.consumer = k.consumer
      AND t.hour > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:lately))
GROUP BY k.consumer ORDER BY k.consumer
