-- name: connection_settings
-- How the store's own connection works; producers choose for theirs.
PRAGMA journal_mode = WAL;
-- In WAL mode NORMAL may forget the last commits of this connection when the power fails, never corrupt them:
-- a forgotten settlement is a duplicate, not a loss. Events are committed by their producers' connections.
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = MEMORY;
-- What a write is about, so that it takes the same few statements for one message as for a thousand.
CREATE TEMP TABLE IF NOT EXISTS settlement (
  row_id      INTEGER NOT NULL,
  destination TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  counted      INTEGER,
  counted_before_send       INTEGER,
  delay       REAL,
  error       TEXT,
  seconds     REAL
);
CREATE INDEX IF NOT EXISTS temp.settlement_row_id_idx ON settlement (row_id)

-- name: schema_migrations
-- Create the table of the migrations that were applied.
CREATE TABLE {schema} (
  version    INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  applied_at TEXT NOT NULL DEFAULT ({now})
)

-- name: schema_version
-- The newest migration that was applied, and the newest that was not additive. Additive ones have negative numbers.
SELECT coalesce(max(abs(version)), 0), coalesce(max(version), 0) FROM {schema}

-- name: schema_register
-- Enter a migration that was applied.
-- example: version=1 migration=0001_initial
INSERT INTO {schema} (version, name) VALUES ({version}, '{migration}')

-- name: schema_unregister
-- Remove a migration that was undone.
-- example: version=2
DELETE FROM {schema} WHERE abs(version) = {version}

-- name: schema_refuse_pending
-- Fail if events are pending, before the tables are dropped. Only a trigger can raise an error with a text.
DROP TABLE IF EXISTS temp."{prefix}refuse_pending";
CREATE TEMP TABLE "{prefix}refuse_pending" (asked);
CREATE TEMP TRIGGER "{prefix}refuse_pending_now" BEFORE INSERT ON "{prefix}refuse_pending"
WHEN EXISTS (SELECT 1 FROM {message})
BEGIN
  SELECT RAISE(ABORT, 'events are pending: deliver them first, or discard them with the tables');
END;
INSERT INTO temp."{prefix}refuse_pending" VALUES (1);
DROP TABLE temp."{prefix}refuse_pending"

-- name: schema_objects
-- List tables, indexes, views and triggers by name, with their text; what SQLite creates by itself has no text.
SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name

-- name: schema_limit
-- Reject payloads above the configured limit. Copies, which share an id, and revived dead letters, which have a
-- deferral, were accepted before.
-- example: max_payload=1048576
DROP TRIGGER IF EXISTS "{prefix}message_payload_limit";
CREATE TRIGGER "{prefix}message_payload_limit" BEFORE INSERT ON {message}
WHEN NEW.shared_id IS NULL AND NEW.deferrals = 0 AND length(CAST(NEW.payload AS BLOB)) > {max_payload}
BEGIN
  SELECT RAISE(ABORT, 'the payload is larger than max_payload, {max_payload} bytes');
END

-- fragment: uuid7
-- A UUIDv7: milliseconds since 1970, the version, random bits with the variant before them.
lower(printf('%08x-%04x-7%s-%s%s-%s',
  (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) >> 16,
  (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) & 65535,
  substr(hex(randomblob(2)), 2), substr('89ab', 1 + (random() & 3), 1),
  substr(hex(randomblob(2)), 2), hex(randomblob(6))))

-- fragment: alias_retry
-- Part of a trigger: move the dead letters of the old row to the end of their key, and request a retry of what is blocked or
-- waits for its retry.
INSERT OR IGNORE INTO {message} (
    shared_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
  SELECT -dead_letter_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, 1
    FROM {dead_letter}
   WHERE event_id = OLD.id AND destination = OLD.destination
   ORDER BY dead_letter_id;
  INSERT INTO {audit} (what, subject, detail)
  SELECT 'retry', event_id, json_object('destination', destination, 'dead_letter_id', dead_letter_id)
    FROM {dead_letter}
   WHERE dead_letter_id IN (SELECT -shared_id FROM {message} WHERE shared_id < 0);
  UPDATE {ledger} SET status = 'PROCESSING', send_number = NULL, updated_at = {now}
   WHERE event_id = OLD.id AND destination = OLD.destination AND EXISTS (SELECT 1 FROM {message} WHERE shared_id < 0);
  DELETE FROM {dead_letter} WHERE dead_letter_id IN (SELECT -shared_id FROM {message} WHERE shared_id < 0);
  UPDATE {message} SET shared_id = NULL WHERE shared_id < 0;
  INSERT INTO {request} (action, event_id, destination)
  SELECT 'retry', event_id, destination
    FROM {message}
   WHERE event_id = OLD.id AND destination = OLD.destination AND (held = 'blocked' OR available_at IS NOT NULL)

-- fragment: time_format
-- How every time is written: in UTC with milliseconds, so that times can be compared as text.
'%Y-%m-%dT%H:%M:%fZ'

-- fragment: past
-- The time this many seconds ago.
strftime({time_format}, 'now', printf('%+.3f seconds', -:{parameter}))

-- fragment: future
-- The time in this many seconds; the last one that SQLite can write if that is later.
coalesce(strftime({time_format}, 'now', printf('%+.3f seconds', :{parameter})), {last_time})

-- fragment: retry_time
-- The time at which a message is retried, given its delay in seconds.
coalesce(strftime({time_format}, 'now', printf('%+.3f seconds', {row}delay)), {last_time})

-- fragment: last_time
-- The last time that SQLite can write.
'9999-12-31T23:59:59.999Z'
