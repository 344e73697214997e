-- Lists for people: by the time of recording, by key and by number. (concurrently: each statement by itself, outside a transaction)

DROP INDEX CONCURRENTLY IF EXISTS {message_recorded_idx};
CREATE INDEX CONCURRENTLY "{prefix}message_recorded_idx" ON {message} (recorded_at, id);
DROP INDEX CONCURRENTLY IF EXISTS {message_blocked_idx};
CREATE INDEX CONCURRENTLY "{prefix}message_blocked_idx" ON {message} (recorded_at, id) WHERE held = 'blocked';
DROP INDEX CONCURRENTLY IF EXISTS {dead_letter_recorded_idx};
CREATE INDEX CONCURRENTLY "{prefix}dead_letter_recorded_idx" ON {dead_letter} (recorded_at, id);
DROP INDEX CONCURRENTLY IF EXISTS {dead_letter_key_idx};
CREATE INDEX CONCURRENTLY "{prefix}dead_letter_key_idx" ON {dead_letter} (key, dead_letter_id);
