-- name: admit
-- Insert an inbox record unless there is one: a row comes back if the event is new to the consumer, and none otherwise.
-- A second transaction waits for the first to commit or roll back. No conflict target and no column in RETURNING: the
-- right to INSERT is enough.
INSERT INTO {inbox} (consumer, event_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1;

-- name: count_results
-- Add the results of a consumer to its statistics of this hour.
INSERT INTO {inbox_statistics} AS t (consumer, processed, duplicates, failures, dead_lettered, last_error, last_failed_at)
VALUES ($1, $2, $3, $4, $5, $6, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -$7 || ' seconds'))
ON CONFLICT (consumer, hour) DO UPDATE
SET processed = t.processed + excluded.processed,
    duplicates = t.duplicates + excluded.duplicates,
    failures = t.failures + excluded.failures,
    dead_lettered = t.dead_lettered + excluded.dead_lettered,
    last_error = coalesce(excluded.last_error, t.last_error),
    last_failed_at = coalesce(excluded.last_failed_at, t.last_failed_at);
