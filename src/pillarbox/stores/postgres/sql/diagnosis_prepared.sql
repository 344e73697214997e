-- Transactions that were prepared longer than $1 seconds ago and that nobody has ended, the oldest first.
SELECT left(gid, 100) AS gid, owner, extract(epoch FROM now() - prepared)::float8 AS seconds FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - make_interval(secs => $1) ORDER BY prepared LIMIT 5
