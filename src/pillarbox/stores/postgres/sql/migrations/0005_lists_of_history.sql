-- Lists of what was delivered. A partitioned table takes no concurrent index: relays wait while these are built.

SET LOCAL statement_timeout = 0;
CREATE INDEX "{prefix}history_recorded_idx" ON {history} (recorded_at, id);
CREATE INDEX "{prefix}history_type_idx" ON {history} (event_type, recorded_at, id);
CREATE INDEX "{prefix}history_key_idx" ON {history} (key, recorded_at, id);
