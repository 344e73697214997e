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
