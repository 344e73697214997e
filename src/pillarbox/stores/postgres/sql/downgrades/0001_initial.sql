-- Drop the tables, functions and views of one outbox and its inbox, with those of `schema apply --aliases`. An archive with
-- rows stays: operators have filled it.

-- The aliases have names that other outboxes use. They are ours if the table of moved dead letters refers to our dead letters.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_constraint
             WHERE contype = 'f' AND conrelid = to_regclass('{outbox_moved}') AND confrelid = to_regclass('{dead_letter}')) THEN
    DROP VIEW IF EXISTS {events_alias}, {outbox_alias}, {outbox_dlq}, {integration_event}, {processed_event};
    DROP TABLE {outbox_moved};
    IF to_regclass('{outbox_archive}') IS NOT NULL THEN
      IF NOT EXISTS (SELECT FROM {outbox_archive}) THEN
        DROP TABLE {outbox_archive};
      END IF;
    END IF;
  END IF;
END $$;
DROP VIEW IF EXISTS {event};
DROP TABLE {message}, {history}, {dead_letter}, {attempt}, {relay}, {lane}, {destination}, {request}, {audit}, {sample},
  {schema}, {inbox}, {inbox_statistics}, {ledger};
DROP FUNCTION IF EXISTS {alias_new}, {alias_update}, {alias_delete}, {events_insert}, {outbox_insert}, {integration_insert},
  {dlq_insert}, {dlq_delete};
DROP FUNCTION {retry}(text), {history_create}(integer), {history_drop}(interval), {clamp_time}(timestamptz), {json}(bytea, text),
  {uuid7}(), {payload_limit}();
