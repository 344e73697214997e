-- Dead letters by type, for people who filter them. (concurrently: each statement by itself, outside a transaction)

DROP INDEX CONCURRENTLY IF EXISTS {dead_letter_type_idx};
CREATE INDEX CONCURRENTLY "{prefix}dead_letter_type_idx" ON {dead_letter} (event_type, dead_letter_id);
