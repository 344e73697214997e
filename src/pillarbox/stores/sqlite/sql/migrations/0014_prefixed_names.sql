-- The tables of the inbox and of the ledger take the prefix, as all others do.

ALTER TABLE {inbox_receipt} RENAME TO {inbox};
DROP INDEX "{stem}inbox_receipt_at_idx";
CREATE INDEX "{prefix}inbox_at_idx" ON {inbox} (received_at);
ALTER TABLE {inbox_tally} RENAME TO {inbox_statistics};
ALTER TABLE {processed_event} RENAME TO {ledger};
