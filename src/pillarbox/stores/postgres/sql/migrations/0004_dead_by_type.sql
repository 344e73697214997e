-- Dead letters by type, for people who filter them. (concurrently: each statement by itself, outside a transaction)

DROP INDEX CONCURRENTLY IF EXISTS {dead_type_idx};
CREATE INDEX CONCURRENTLY "{prefix}dead_type_idx" ON {dead} (event_type, dead_id);
