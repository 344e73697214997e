-- The history in the order of delivery, for replays. A partitioned table takes no concurrent index: relays wait while it is built.

SET LOCAL statement_timeout = 0;
CREATE INDEX "{prefix}history_published_idx" ON {history} (published_at, id);
