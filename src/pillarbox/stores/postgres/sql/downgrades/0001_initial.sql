-- Drop the tables, functions and views of one outbox and its inbox, with those of `schema apply --aliases`.

DROP VIEW IF EXISTS {event}, {events_alias}, {outbox_alias}, {outbox_dlq}, {integration_event}, {processed_event};
DROP TABLE IF EXISTS {outbox_archive}, {outbox_moved};
DROP TABLE {message}, {history}, {dead_letter}, {attempt}, {relay}, {lane}, {destination}, {request}, {audit}, {sample},
  {schema}, {inbox}, {inbox_statistics}, {ledger};
DROP FUNCTION IF EXISTS {alias_new}, {alias_update}, {alias_delete}, {events_insert}, {outbox_insert}, {integration_insert},
  {dlq_insert}, {dlq_delete};
DROP FUNCTION {retry}(text), {history_create}(integer), {history_drop}(interval), {clamp_time}(timestamptz), {json}(bytea, text),
  {uuid7}(), {payload_limit}();
