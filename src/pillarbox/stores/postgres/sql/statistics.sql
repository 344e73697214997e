-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT $1, i.destination, i.statistics::jsonb FROM unnest($2::text[], $3::text[]) AS i(destination, statistics)
