-- name: admit
-- Insert an inbox record unless there is one: a row comes back if the event is new to the consumer, and none otherwise.
-- A second transaction waits for the first to commit or roll back. No conflict target and no column in RETURNING: the
-- right to INSERT is enough.
INSERT INTO {inbox} (consumer, event_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1;

-- name: count_results
-- Add the results of a consumer to its statistics of this hour.
INSERT INTO {inbox_statistics} AS t (consumer, handled, repeated, failed, given_up, last_error, last_failed_at)
VALUES ($1, $2, $3, $4, $5, $6, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -$7 || ' seconds'))
ON CONFLICT (consumer, hour) DO UPDATE
SET handled = t.handled + excluded.handled,
    repeated = t.repeated + excluded.repeated,
    failed = t.failed + excluded.failed,
    given_up = t.given_up + excluded.given_up,
    last_error = coalesce(excluded.last_error, t.last_error),
    last_failed_at = coalesce(excluded.last_failed_at, t.last_failed_at);
