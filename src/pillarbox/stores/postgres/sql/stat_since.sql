-- Samples of the last so many seconds, the newest first, up to a limit.
SELECT at, relay, destination, figures::text FROM {stat}
WHERE at >= now() - $1::double precision * interval '1 second' ORDER BY at DESC LIMIT $2
