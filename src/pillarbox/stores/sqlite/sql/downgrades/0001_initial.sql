-- Drop the tables and views of one outbox and its inbox, with those of `schema apply --aliases`; triggers and indexes go with them.
-- The archive stays: operators have filled it.

DROP VIEW IF EXISTS {events_alias};
DROP VIEW IF EXISTS {outbox_alias};
DROP VIEW IF EXISTS {outbox_dlq};
DROP VIEW IF EXISTS {integration_event};
DROP VIEW IF EXISTS {processed_event};
DROP VIEW {event};
DROP TABLE IF EXISTS {outbox_moved};
DROP TABLE {message};
DROP TABLE {history};
DROP TABLE {dead_letter};
DROP TABLE {attempt};
DROP TABLE {relay};
DROP TABLE {lane};
DROP TABLE {destination};
DROP TABLE {request};
DROP TABLE {audit};
DROP TABLE {sample};
DROP TABLE {inbox};
DROP TABLE {inbox_statistics};
DROP TABLE {ledger};
DROP TABLE {schema};
