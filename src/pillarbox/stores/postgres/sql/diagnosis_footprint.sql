-- The tables and the days of history, the largest first: rows as the server's statistics estimate them, bytes with indexes.
SELECT c.relname, coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid) AS bytes,
       CASE WHEN i.inhrelid IS NULL THEN '' ELSE '{prefix}history' END
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = to_regclass('{history}')
LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE i.inhrelid IS NOT NULL OR c.oid IN (to_regclass('{message}'), to_regclass('{dead}'), to_regclass('{relay}'),
  to_regclass('{lane}'), to_regclass('{destination}'), to_regclass('{attempt}'), to_regclass('{stat}'), to_regclass('{request}'),
  to_regclass('{audit}'), to_regclass('{inbox_receipt}'), to_regclass('{inbox_tally}'), to_regclass('{processed_event}'))
ORDER BY bytes DESC, c.relname
