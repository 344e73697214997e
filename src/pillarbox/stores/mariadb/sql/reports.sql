-- name: report_destination
-- Store the last error and the next attempt of a destination. Overrides stay.
INSERT INTO {destination} (destination, last_error, next_attempt_at)
VALUES (:destination, :error, {now} + INTERVAL :next_attempt MICROSECOND)
ON DUPLICATE KEY UPDATE last_error = VALUES(last_error), next_attempt_at = VALUES(next_attempt_at)

-- name: destination_overrides
-- Read the destinations that have an override or a reported error.
SELECT destination, paused, breaker, rate_limit, last_error FROM {destination}
 WHERE paused OR breaker IS NOT NULL OR rate_limit IS NOT NULL OR last_error IS NOT NULL
 ORDER BY destination

-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT :relay, i.destination, i.statistics
  FROM JSON_TABLE(:values, '$[*]' COLUMNS (n FOR ORDINALITY, destination VARCHAR(255) {bytewise} PATH '$[0]',
         statistics LONGTEXT {bytewise} PATH '$[1]')) AS i
 ORDER BY i.n
