-- Add what a consumer met to the row of this hour.
INSERT INTO {inbox_tally} AS t (consumer, handled, repeated, failed, given_up, last_error, last_failed_at)
VALUES ($1, $2, $3, $4, $5, $6, now() - $7::double precision * interval '1 second')
ON CONFLICT (consumer, hour) DO UPDATE
SET handled = t.handled + excluded.handled,
    repeated = t.repeated + excluded.repeated,
    failed = t.failed + excluded.failed,
    given_up = t.given_up + excluded.given_up,
    last_error = coalesce(excluded.last_error, t.last_error),
    last_failed_at = coalesce(excluded.last_failed_at, t.last_failed_at);
