-- Samples of the last so many seconds, the newest first, up to a limit.
SELECT at, relay, destination, figures FROM {stat}
 WHERE at >= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
 ORDER BY at DESC LIMIT :most;
