"""The schema as it was before its last migrations."""

from pathlib import Path

import pillarbox.stores.postgres

MIGRATIONS = sorted((Path(pillarbox.stores.postgres.__file__).parent / "sql" / "migrations").glob("*.sql"))
LAST = MIGRATIONS[-1].stem

WITHOUT_THE_LAST_STEP = """
DELETE FROM outbox_schema WHERE version = 17;
DROP VIEW IF EXISTS processed_event;
ALTER TABLE outbox_inbox RENAME TO inbox_receipt;
ALTER INDEX outbox_inbox_pkey RENAME TO inbox_receipt_pkey;
ALTER INDEX outbox_inbox_at_idx RENAME TO inbox_receipt_at_idx;
ALTER TABLE outbox_inbox_statistics RENAME TO inbox_tally;
ALTER INDEX outbox_inbox_statistics_pkey RENAME TO inbox_tally_pkey;
ALTER TABLE outbox_ledger RENAME TO processed_event;
ALTER TABLE processed_event RENAME CONSTRAINT outbox_ledger_status_check TO processed_event_status_check;
ALTER INDEX outbox_ledger_pkey RENAME TO processed_event_pkey;
ALTER INDEX outbox_ledger_id_key RENAME TO processed_event_id_key;
ALTER SEQUENCE outbox_ledger_id_seq RENAME TO processed_event_id_seq;
"""

BACK_BEFORE_OPERATORS = f"""
{WITHOUT_THE_LAST_STEP}
DELETE FROM outbox_schema WHERE version = 16;
DELETE FROM outbox_schema WHERE version = 15;
ALTER TABLE outbox_relay DROP COLUMN stalled;
DELETE FROM outbox_schema WHERE version = 14;
DELETE FROM outbox_schema WHERE version = 13;
ALTER TABLE processed_event DROP COLUMN send_number;
DELETE FROM outbox_schema WHERE version = 12;
ALTER TABLE outbox_relay DROP COLUMN session;
DELETE FROM outbox_schema WHERE version = 11;
DELETE FROM outbox_schema WHERE version = 10;
ALTER TABLE outbox_request DROP COLUMN bulk_action_id;
DROP INDEX outbox_request_event_idx;
DELETE FROM outbox_schema WHERE version = 9;
DROP TABLE inbox_tally;
ALTER TABLE outbox_attempt DROP COLUMN seconds;
ALTER TABLE outbox_history DROP COLUMN seconds;
DELETE FROM outbox_schema WHERE version = 8;
DROP INDEX outbox_history_published_idx;
DELETE FROM outbox_schema WHERE version = 7;
DROP INDEX outbox_stat_at_idx;
ALTER TABLE outbox_sample RENAME COLUMN at TO minute;
ALTER TABLE outbox_sample ADD PRIMARY KEY (minute, relay, destination);
ALTER TABLE outbox_relay DROP COLUMN drain_requested_by;
ALTER TABLE outbox_request DROP CONSTRAINT outbox_request_action_ck;
ALTER TABLE outbox_request ADD CONSTRAINT outbox_request_action_check CHECK (action <> '');
"""
