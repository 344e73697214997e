-- name: add_statistics
-- Add what a relay measured of its destinations since its last report.
INSERT INTO {sample} (relay, destination, statistics)
SELECT :relay, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:statistics)
