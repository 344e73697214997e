-- name: report_destination
-- Store the last error and the next attempt of a destination. Overrides stay, and a report without a change writes nothing.
INSERT INTO {destination} AS d (destination, last_error, next_attempt_at)
VALUES ($1, $2, now() + $3::double precision * interval '1 second')
ON CONFLICT (destination) DO UPDATE SET last_error = excluded.last_error, next_attempt_at = excluded.next_attempt_at
WHERE (d.last_error, d.next_attempt_at) IS DISTINCT FROM (excluded.last_error, excluded.next_attempt_at)

-- name: destination_overrides
-- Read the destinations that have an override or a reported error.
SELECT destination, paused, breaker, rate_limit, last_error FROM {destination}
WHERE paused OR breaker IS NOT NULL OR rate_limit IS NOT NULL OR last_error IS NOT NULL
ORDER BY destination COLLATE "C"

-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT $1, i.destination, i.statistics::jsonb FROM unnest($2::text[], $3::text[]) AS i(destination, statistics)
