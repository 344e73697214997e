-- name: diagnosis_server
-- Which server answers, under which role, and does it accept writes?
SELECT current_setting('server_version') AS version, current_database() AS database, current_user AS role,
       pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only')::boolean AS read_only

-- name: diagnosis_session
-- Which server process works for this connection, and did it get the connection's options?
SELECT pg_backend_pid(), current_setting('search_path') = 'pg_catalog, pg_temp'

-- name: diagnosis_encryption
-- Is this connection encrypted?
SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()

-- name: diagnosis_settings
-- The server's settings that decide what a commit means and how vacuum runs.
SELECT name, setting FROM pg_settings
WHERE name IN ('autovacuum', 'track_counts', 'fsync', 'full_page_writes', 'synchronous_commit')

-- name: diagnosis_grants
-- Of the rights that a relay needs ($1 kinds, $2 names, $3 rights), list those that this role lacks. Objects that do not exist
-- are reported by the check of the schema.
SELECT w.name, w.privilege
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(kind, name, privilege, n)
LEFT JOIN pg_namespace n ON n.nspname = $4
LEFT JOIN pg_class c ON w.kind IN ('TABLE', 'SEQUENCE') AND c.relnamespace = n.oid AND c.relname = w.name
LEFT JOIN pg_proc p ON w.kind = 'FUNCTION' AND p.pronamespace = n.oid AND p.proname = w.name
WHERE CASE w.kind WHEN 'SCHEMA' THEN NOT has_schema_privilege(n.oid, w.privilege)
                  WHEN 'FUNCTION' THEN NOT has_function_privilege(p.oid, w.privilege)
                  WHEN 'SEQUENCE' THEN NOT has_sequence_privilege(c.oid, w.privilege)
                  ELSE NOT has_table_privilege(c.oid, w.privilege) END
ORDER BY w.n

-- name: diagnosis_indexes
-- Of the indexes that the migrations create ($1), list those that do not exist or are invalid.
SELECT w.name, i.indexrelid IS NULL AS missing
FROM unnest($1::text[]) WITH ORDINALITY AS w(name, n)
LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace s ON s.oid = c.relnamespace AND s.nspname = $2)
       ON c.relname = w.name
WHERE i.indexrelid IS NULL OR NOT i.indisvalid ORDER BY w.n

-- name: diagnosis_days
-- Does tomorrow's partition of the history exist?
SELECT to_regclass(format('{schema_name}.%I',
  '{prefix}history_' || to_char((now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD'))) IS NOT NULL

-- name: diagnosis_table_sizes
-- List the tables and the days of history, the largest first: rows as the server estimates them, bytes with indexes.
SELECT c.relname, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid) AS bytes,
       CASE WHEN i.inhrelid IS NULL THEN '' ELSE '{prefix}history' END
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = to_regclass('{history}')
LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE i.inhrelid IS NOT NULL OR c.oid IN (to_regclass('{message}'), to_regclass('{dead_letter}'), to_regclass('{relay}'),
  to_regclass('{lane}'), to_regclass('{destination}'), to_regclass('{attempt}'), to_regclass('{sample}'), to_regclass('{request}'),
  to_regclass('{audit}'), to_regclass('{inbox}'), to_regclass('{inbox_statistics}'), to_regclass('{ledger}'))
ORDER BY bytes DESC, c.relname

-- name: diagnosis_bloat
-- Estimate the dead rows of the tables that change most, from the server's statistics.
SELECT relname, n_live_tup AS live, n_dead_tup AS dead, pg_relation_size(relid) AS bytes FROM pg_stat_all_tables
WHERE relid IN ('{message}'::regclass, '{lane}'::regclass, '{relay}'::regclass, '{destination}'::regclass)
ORDER BY n_dead_tup DESC

-- name: diagnosis_options
-- Read the autovacuum options of the tables that change most.
SELECT c.relname, coalesce(c.reloptions, '{}') AS options FROM pg_class c
WHERE c.oid IN ('{message}'::regclass, '{lane}'::regclass, '{relay}'::regclass, '{destination}'::regclass)
ORDER BY c.relname

-- name: diagnosis_transactions
-- List transactions of this database that have been open for longer than $1 seconds and block vacuum, the oldest first;
-- and count the sessions that this role has no permission to see.
SELECT pid, usename, application_name, state, extract(epoch FROM now() - xact_start)::float8 AS seconds, left(query, 500) AS query,
       (SELECT count(*) FROM pg_stat_activity h
        WHERE h.datname = current_database() AND h.query = '<insufficient privilege>') AS hidden
FROM (SELECT) AS always LEFT JOIN pg_stat_activity a
  ON a.datname = current_database() AND a.pid <> pg_backend_pid() AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
     AND a.xact_start < now() - make_interval(secs => $1)
ORDER BY a.xact_start LIMIT 5

-- name: diagnosis_prepared
-- List transactions that were prepared longer than $1 seconds ago and not ended, the oldest first.
SELECT left(gid, 100) AS gid, owner, extract(epoch FROM now() - prepared)::float8 AS seconds FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - make_interval(secs => $1) ORDER BY prepared LIMIT 5

-- name: diagnosis_retried
-- Of the first $1 pending messages, list those that were sent more than $2 times.
SELECT left(coalesce(m.last_error, ''), 500), m.event_id
FROM (SELECT event_id, last_error, attempts + deferrals AS deferrals FROM {message} ORDER BY recorded_at, id LIMIT $1) m
WHERE m.deferrals > $2
