-- The keys with the most messages among those that were recorded first.
SELECT key, count(*) FROM (SELECT key FROM {message} ORDER BY recorded_at, id LIMIT :most)
 WHERE key IS NOT NULL GROUP BY key ORDER BY count(*) DESC, key LIMIT :limit;
