-- Transactions of this database that have been open for longer than $1 seconds and keep vacuum from its work, the oldest
-- first; sessions of which this role may see nothing are counted beside them.
SELECT pid, usename, application_name, state, extract(epoch FROM now() - xact_start)::float8 AS seconds, left(query, 500) AS query,
       (SELECT count(*) FROM pg_stat_activity h
        WHERE h.datname = current_database() AND h.query = '<insufficient privilege>') AS hidden
FROM (SELECT) AS always LEFT JOIN pg_stat_activity a
  ON a.datname = current_database() AND a.pid <> pg_backend_pid() AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
     AND a.xact_start < now() - make_interval(secs => $1)
ORDER BY a.xact_start LIMIT 5
