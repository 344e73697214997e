-- What waits, what was given up on and the keys that stand still, each counted up to a limit. The age is that of the oldest
-- which could have left: the first recorded that is not delayed, the first delayed one that is due, or the first that is ready. Each is
-- looked for among so many, and the search ends with the first found: a relay asks while the backlog is large.
WITH oldest AS MATERIALIZED (
  SELECT since, event_id
    FROM (SELECT * FROM (SELECT id, event_id, recorded_at AS since
                           FROM (SELECT id, event_id, recorded_at,
                                        held IS NULL AND available_at IS NOT NULL AND attempts + tries = 0 AS delayed
                                   FROM {message} ORDER BY recorded_at, id LIMIT :most + 1)
                          WHERE NOT delayed AND recorded_at <= {now}
                          LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT id, event_id, available_at
                           FROM (SELECT id, event_id, available_at, attempts + tries AS failures
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
SELECT (SELECT count(*) FROM (SELECT 1 FROM {message} LIMIT :counted + 1)),
       (SELECT round((julianday({now}) - julianday(since)) * 86400.0, 3) FROM oldest),
       (SELECT count(*) FROM (SELECT 1 FROM {dead} LIMIT :most + 1)),
       (SELECT count(*) FROM (SELECT 1 FROM {message} WHERE held = 'blocked' ORDER BY recorded_at, id LIMIT :most + 1)),
       (SELECT event_id FROM oldest);
