-- Rows that are gone and still take room, as the server's statistics estimate them.
SELECT relname, n_live_tup AS live, n_dead_tup AS dead, pg_relation_size(relid) AS bytes FROM pg_stat_all_tables
WHERE relid IN ('{message}'::regclass, '{lane}'::regclass, '{relay}'::regclass, '{destination}'::regclass)
ORDER BY n_dead_tup DESC
