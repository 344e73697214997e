-- The tables, triggers and the view of one outbox and its inbox.
--
--   producers write   message; consumers: inbox, inbox_statistics
--   relays write      history, dead_letter, attempt, destination, relay, lane, sample, ledger
--   operators write   request, audit, destination
--
-- Times are text: ISO 8601 in UTC with milliseconds and a Z, so that comparing texts compares times.
-- A released migration never changes: a later release adds a file. See docs/reference/schema.md for the columns.

-- ---------------------------------------------------------------------------------------------------------------------
-- message: events that are not delivered yet, one row per destination once a route is found

CREATE TABLE {message} (
  -- AUTOINCREMENT: a plain rowid would start again at 1 once the table is empty, and break the order.
  row_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The sequence that copies of one event for several destinations share; NULL for all others. While dead letters are retried,
  -- for the duration of the transaction: minus the number of the dead letter. Never given by a producer.
  shared_id       INTEGER,
  -- The sequence.
  id              INTEGER GENERATED ALWAYS AS (coalesce(shared_id, row_id)) VIRTUAL,
  -- A UUIDv7: milliseconds since 1970, the version, random bits with the variant before them.
  event_id        TEXT NOT NULL DEFAULT (lower(printf('%08x-%04x-7%s-%s%s-%s',
                    (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) >> 16,
                    (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) & 65535,
                    substr(hex(randomblob(2)), 2), substr('89ab', 1 + (random() & 3), 1),
                    substr(hex(randomblob(2)), 2), hex(randomblob(6))))),
  -- '' until the relay has found a route.
  destination     TEXT NOT NULL DEFAULT '',
  event_type      TEXT NOT NULL,
  aggregate_type  TEXT,
  aggregate_id    TEXT,
  ordering_key    TEXT,
  -- Events of one key are sent in order; NULL means no order.
  key             TEXT GENERATED ALWAYS AS
                    (coalesce(ordering_key, aggregate_type || ':' || aggregate_id, aggregate_id)) VIRTUAL,
  payload         BLOB NOT NULL,
  content_type    TEXT NOT NULL DEFAULT 'application/json',
  headers         TEXT NOT NULL DEFAULT '{}',
  schema_version  INTEGER NOT NULL DEFAULT 1,
  correlation_id  TEXT,
  causation_id    TEXT,
  trace_id        TEXT,
  occurred_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  recorded_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  -- NULL: now. Otherwise the time of the retry or of the delayed event.
  available_at    TEXT,
  -- waiting: for an earlier event of its key; parked: its destination is unavailable, paused or rate-limited; blocked: an
  -- operator must decide.
  held            TEXT,
  -- Failed sends that count towards max_attempts, and failed sends that do not. An operator's retry sets deferrals to 1 at
  -- least, so that the message keeps its position in its key.
  attempts        INTEGER NOT NULL DEFAULT 0,
  deferrals       INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT,
  first_failed_at TEXT,
  last_attempt_at TEXT,
  UNIQUE (event_id, destination),
  -- These constraints reject at the INSERT what a broker or a relay would reject later, when it would stop all others.
  -- GLOB ends at a NUL, hence the search for char(0) beside it.
  CONSTRAINT {prefix}message_event_id_ck CHECK (
    typeof(event_id) = 'text' AND length(CAST(event_id AS BLOB)) BETWEEN 1 AND 200
    AND event_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(event_id, char(0)) = 0),
  CONSTRAINT {prefix}message_event_type_ck CHECK (
    typeof(event_type) = 'text' AND length(CAST(event_type AS BLOB)) BETWEEN 1 AND 255
    AND event_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(event_type, char(0)) = 0),
  CONSTRAINT {prefix}message_aggregate_type_ck CHECK (aggregate_type IS NULL OR (
    typeof(aggregate_type) = 'text' AND length(CAST(aggregate_type AS BLOB)) <= 255
    AND aggregate_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(aggregate_type, char(0)) = 0)),
  CONSTRAINT {prefix}message_aggregate_id_ck CHECK (aggregate_id IS NULL OR (
    typeof(aggregate_id) = 'text' AND length(CAST(aggregate_id AS BLOB)) <= 255
    AND aggregate_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(aggregate_id, char(0)) = 0)),
  CONSTRAINT {prefix}message_ordering_key_ck CHECK (ordering_key IS NULL OR (
    typeof(ordering_key) = 'text' AND length(CAST(ordering_key AS BLOB)) <= 255
    AND ordering_key NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(ordering_key, char(0)) = 0)),
  CONSTRAINT {prefix}message_texts_ck CHECK (
    typeof(destination) = 'text' AND length(CAST(destination AS BLOB)) <= 255
    AND typeof(content_type) = 'text' AND length(CAST(content_type AS BLOB)) <= 255
    AND typeof(correlation_id) IN ('text', 'null') AND typeof(causation_id) IN ('text', 'null')
    AND typeof(trace_id) IN ('text', 'null')),
  CONSTRAINT {prefix}message_headers_ck CHECK (
    typeof(headers) = 'text' AND instr(headers, char(0)) = 0
    AND CASE WHEN json_valid(headers) THEN json_type(headers) = 'object' ELSE 0 END),
  CONSTRAINT {prefix}message_numbers_ck CHECK (
    typeof(schema_version) = 'integer' AND typeof(attempts) = 'integer' AND typeof(deferrals) = 'integer'),
  -- julianday turns a 30th of February into a 2nd of March, which differs from the text.
  CONSTRAINT {prefix}message_occurred_ck CHECK (
    (occurred_at GLOB
      '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
     -- No query compares these times, so they may have microseconds.
     OR occurred_at GLOB
      '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z')
    AND occurred_at >= '0001' AND date(julianday(substr(occurred_at, 1, 19))) IS substr(occurred_at, 1, 10)),
  CONSTRAINT {prefix}message_recorded_ck CHECK (
    recorded_at GLOB
      '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
    AND recorded_at >= '0001' AND date(julianday(substr(recorded_at, 1, 19))) IS substr(recorded_at, 1, 10)),
  CONSTRAINT {prefix}message_available_ck CHECK (available_at IS NULL OR (
    available_at GLOB
      '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
    AND available_at >= '0001' AND date(julianday(substr(available_at, 1, 19))) IS substr(available_at, 1, 10))),
  CONSTRAINT {prefix}message_held_ck CHECK (held IN ('waiting', 'parked', 'blocked'))
);

-- Messages that are ready.
CREATE INDEX {prefix}message_ready_idx ON {message} (id)
  WHERE held IS NULL AND available_at IS NULL;
-- Retries and delayed events by their time.
CREATE INDEX {prefix}message_due_idx ON {message} (available_at, id)
  WHERE held IS NULL AND available_at IS NOT NULL;
-- Messages that hold back later messages of their key: retries, due or not, and parked or blocked messages.
CREATE INDEX {prefix}message_holding_idx ON {message} (key, destination, id)
  WHERE held IN ('parked', 'blocked') OR (held IS NULL AND available_at IS NOT NULL AND attempts + deferrals > 0);
-- Waiting messages, each ordering queue in order.
CREATE INDEX {prefix}message_waiting_idx ON {message} (key, destination, id)
  WHERE held = 'waiting';
-- Delayed events of a key: they hold the key back only once they are due.
CREATE INDEX {prefix}message_delayed_idx ON {message} (key, available_at)
  WHERE held IS NULL AND available_at IS NOT NULL AND attempts + deferrals = 0;
-- Messages that wait for a destination to become available.
CREATE INDEX {prefix}message_parked_idx ON {message} (destination, id)
  WHERE held = 'parked';
-- Copies by the sequence that they share.
CREATE INDEX {prefix}message_shared_id_idx ON {message} (shared_id, destination)
  WHERE shared_id IS NOT NULL;
-- Lists of pending events, and of blocked ones.
CREATE INDEX {prefix}message_recorded_idx ON {message} (recorded_at, id);
CREATE INDEX {prefix}message_blocked_idx ON {message} (recorded_at, id) WHERE held = 'blocked';

-- ---------------------------------------------------------------------------------------------------------------------
-- history: delivered messages

CREATE TABLE {history} (
  id              INTEGER NOT NULL,
  event_id        TEXT NOT NULL,
  destination     TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  aggregate_type  TEXT,
  aggregate_id    TEXT,
  key             TEXT,
  payload         BLOB NOT NULL,
  content_type    TEXT NOT NULL,
  headers         TEXT NOT NULL,
  schema_version  INTEGER NOT NULL,
  correlation_id  TEXT,
  causation_id    TEXT,
  trace_id        TEXT,
  occurred_at     TEXT NOT NULL,
  recorded_at     TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  deferrals       INTEGER NOT NULL,
  last_error      TEXT,
  last_attempt_at TEXT,
  published_at    TEXT NOT NULL,
  -- Duration of the send; NULL if nothing was sent, because the ledger knew the event.
  seconds         REAL
);
CREATE INDEX {prefix}history_event_id_idx ON {history} (event_id);
CREATE INDEX {prefix}history_published_at_idx ON {history} (published_at);
-- Lists by the time of recording, by type and by key.
CREATE INDEX {prefix}history_recorded_idx ON {history} (recorded_at, id);
CREATE INDEX {prefix}history_type_idx ON {history} (event_type, recorded_at, id);
CREATE INDEX {prefix}history_key_idx ON {history} (key, recorded_at, id);

-- ---------------------------------------------------------------------------------------------------------------------
-- dead_letter: messages without attempts left

CREATE TABLE {dead_letter} (
  dead_letter_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  id               INTEGER NOT NULL,
  event_id         TEXT NOT NULL,
  destination      TEXT NOT NULL,
  event_type       TEXT NOT NULL,
  aggregate_type   TEXT,
  aggregate_id     TEXT,
  ordering_key     TEXT,
  key              TEXT,
  payload          BLOB NOT NULL,
  content_type     TEXT NOT NULL,
  headers          TEXT NOT NULL,
  schema_version   INTEGER NOT NULL,
  correlation_id   TEXT,
  causation_id     TEXT,
  trace_id         TEXT,
  occurred_at      TEXT NOT NULL,
  recorded_at      TEXT NOT NULL,
  attempts         INTEGER NOT NULL,
  deferrals        INTEGER NOT NULL,
  error            TEXT NOT NULL,
  first_failed_at  TEXT,
  last_attempt_at  TEXT,
  dead_lettered_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX {prefix}dead_letter_event_id_idx ON {dead_letter} (event_id);
CREATE INDEX {prefix}dead_letter_at_idx ON {dead_letter} (dead_lettered_at);
-- Lists by type, by key and by the time of recording.
CREATE INDEX {prefix}dead_letter_type_idx ON {dead_letter} (event_type, dead_letter_id);
CREATE INDEX {prefix}dead_letter_key_idx ON {dead_letter} (key, dead_letter_id);
CREATE INDEX {prefix}dead_letter_recorded_idx ON {dead_letter} (recorded_at, id);

-- ---------------------------------------------------------------------------------------------------------------------
-- Triggers of message that reject what a CHECK cannot see: other rows, the row_id that was assigned, and bytes that are no text

-- AFTER, because only then a row without a given row_id has one. AUTOINCREMENT continues from the largest row_id there was, and
-- after 2^63 - 1 it rejects every INSERT: no producer may jump there. (A statement with OR IGNORE skips rows that it leaves
-- out.) A relay adds to the counters, and their sum must remain an integer.
CREATE TRIGGER "{prefix}message_bounds" AFTER INSERT ON {message}
BEGIN
  SELECT CASE
    WHEN NEW.row_id < 1
         OR NEW.row_id - 1000000 > max(coalesce((SELECT max(o.row_id) FROM {message} AS o WHERE o.row_id < NEW.row_id), 0),
                                       coalesce((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = '{prefix}message'), 0))
      THEN RAISE(ABORT, 'constraint failed: row_id is far from the others; leave it out')
    -- Only copies of one event share a sequence, and a dead letter that is retried names its number for a moment.
    WHEN NEW.shared_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM {message} AS o
                          WHERE o.event_id = NEW.event_id AND o.row_id <> NEW.row_id AND o.id = NEW.shared_id)
         AND NOT EXISTS (SELECT 1 FROM {dead_letter} AS d
                          WHERE d.dead_letter_id = -NEW.shared_id AND d.event_id = NEW.event_id AND d.destination = NEW.destination)
      THEN RAISE(ABORT, 'constraint failed: shared_id belongs to another event; leave it out')
    WHEN NEW.attempts NOT BETWEEN 0 AND 1000000000 OR NEW.deferrals NOT BETWEEN 0 AND 1000000000
      THEN RAISE(ABORT, 'constraint failed: attempts and deferrals must be between 0 and 1000000000')
    -- No fetch would find a waiting message without a key.
    WHEN NEW.held = 'waiting' AND NEW.key IS NULL THEN RAISE(ABORT, 'constraint failed: held is waiting without a key')
    WHEN typeof(NEW.last_error) NOT IN ('text', 'null') THEN RAISE(ABORT, 'constraint failed: last_error is not text')
    WHEN NEW.first_failed_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
         OR NEW.last_attempt_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
      THEN RAISE(ABORT, 'constraint failed: first_failed_at and last_attempt_at are written 2026-01-31T23:59:59.999Z')
  END;
END;

-- SQLite accepts any bytes as text, but a relay could not name such a row again: every fetch would return it, no settlement
-- would find it, and later messages of its key would wait for it for ever. A character that differs from what unicode() reads
-- is not UTF-8, except for two noncharacters. Texts in printable ASCII are not taken apart.
CREATE TRIGGER "{prefix}message_texts_inserted" AFTER INSERT ON {message}
WHEN instr(NEW.destination, char(0)) > 0
  OR NEW.event_id || NEW.destination || NEW.event_type || coalesce(NEW.key, '') GLOB '*[^ -~]*'
BEGIN
  SELECT RAISE(ABORT, 'constraint failed: event_id, destination, event_type and key are UTF-8 without NUL')
   WHERE instr(NEW.destination, char(0)) > 0 OR EXISTS (
     WITH RECURSIVE piece(text, position) AS (
       SELECT t.text, 1
         FROM (SELECT NEW.event_id AS text UNION ALL SELECT NEW.destination UNION ALL SELECT NEW.event_type
               UNION ALL SELECT NEW.key) AS t
        WHERE t.text <> ''
       UNION ALL
       SELECT text, position + 1 FROM piece WHERE position < length(text))
     SELECT 1 FROM piece
      WHERE char(unicode(substr(text, position, 1))) <> substr(text, position, 1)
        AND substr(text, position, 1) NOT IN (CAST(x'EFBFBE' AS TEXT), CAST(x'EFBFBF' AS TEXT)));
END;
CREATE TRIGGER "{prefix}message_texts_updated"
AFTER UPDATE OF event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key ON {message}
WHEN instr(NEW.destination, char(0)) > 0
  OR NEW.event_id || NEW.destination || NEW.event_type || coalesce(NEW.key, '') GLOB '*[^ -~]*'
BEGIN
  SELECT RAISE(ABORT, 'constraint failed: event_id, destination, event_type and key are UTF-8 without NUL')
   WHERE instr(NEW.destination, char(0)) > 0 OR EXISTS (
     WITH RECURSIVE piece(text, position) AS (
       SELECT t.text, 1
         FROM (SELECT NEW.event_id AS text UNION ALL SELECT NEW.destination UNION ALL SELECT NEW.event_type
               UNION ALL SELECT NEW.key) AS t
        WHERE t.text <> ''
       UNION ALL
       SELECT text, position + 1 FROM piece WHERE position < length(text))
     SELECT 1 FROM piece
      WHERE char(unicode(substr(text, position, 1))) <> substr(text, position, 1)
        AND substr(text, position, 1) NOT IN (CAST(x'EFBFBE' AS TEXT), CAST(x'EFBFBF' AS TEXT)));
END;

-- ---------------------------------------------------------------------------------------------------------------------
-- attempt: failed sends only

CREATE TABLE {attempt} (
  attempt_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT NOT NULL,
  destination  TEXT NOT NULL,
  -- The number of the send, from 1.
  attempt      INTEGER NOT NULL,
  -- Whether it counts towards max_attempts; otherwise it is a deferral.
  counted      INTEGER NOT NULL CHECK (counted IN (0, 1)),
  error        TEXT NOT NULL,
  attempted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  -- Duration of the send; NULL if nothing was sent.
  seconds      REAL
);
CREATE INDEX {prefix}attempt_event_id_idx ON {attempt} (event_id);
CREATE INDEX {prefix}attempt_at_idx ON {attempt} (attempted_at);

-- ---------------------------------------------------------------------------------------------------------------------
-- relay: one row per running relay

CREATE TABLE {relay} (
  id                 TEXT PRIMARY KEY NOT NULL,
  name               TEXT NOT NULL DEFAULT '',
  host               TEXT NOT NULL DEFAULT '',
  version            TEXT NOT NULL DEFAULT '',
  started_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  -- For operators; on the host of the relay the next two columns decide.
  lease_until        TEXT NOT NULL,
  -- The lease in seconds, and its end by the clock that counts from the start of the host: a change of the wall clock ends no
  -- lease.
  lease_length       REAL,
  lease_end          REAL,
  -- 'lock' if the relay locks a file beside the database. When the lock is free, other relays need not wait for the lease.
  session            TEXT,
  -- Until when it sleeps while it is idle; NULL while it works.
  asleep_until       TEXT,
  -- Messages in flight for longer than a second: [[event_id, destination, since], …]
  in_flight          TEXT NOT NULL DEFAULT '[]',
  -- Its circuit breakers, destination → state, so that other relays and operators see where it can send.
  breakers           TEXT NOT NULL DEFAULT '{}',
  -- Why it makes no progress although it could; '' otherwise.
  stalled            TEXT NOT NULL DEFAULT '',
  -- The operator who requested that it drains.
  drain_requested_by TEXT
);

-- ---------------------------------------------------------------------------------------------------------------------
-- lane: which relay owns the messages; one lane, because SQLite has one writer

CREATE TABLE {lane} (
  lane    INTEGER PRIMARY KEY,
  -- relay.id; NULL: no owner.
  owner   TEXT,
  -- Grows with each change of the owner. A write under an old epoch is rejected.
  epoch   INTEGER NOT NULL DEFAULT 0,
  -- Owners that crashed since the last settlement: the crash guard quarantines messages.
  crashes INTEGER NOT NULL DEFAULT 0
);
INSERT INTO {lane} (lane) VALUES (0);

-- ---------------------------------------------------------------------------------------------------------------------
-- destination: what operators override, and what relays report

CREATE TABLE {destination} (
  -- '*' stands for all.
  destination     TEXT PRIMARY KEY NOT NULL,
  -- Operators: nothing is sent.
  paused          INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  -- Operators: forced state of the circuit breaker; NULL: automatic.
  breaker         TEXT CHECK (breaker IN ('open', 'closed')),
  -- Operators: messages per second of all relays together; NULL: as in the settings.
  rate_limit      REAL,
  changed_at      TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  changed_by      TEXT,
  -- Relays: NULL while the destination is available.
  last_error      TEXT,
  next_attempt_at TEXT
);

-- ---------------------------------------------------------------------------------------------------------------------
-- request: what operators request for pending messages; the owner of the lane executes it

CREATE TABLE {request} (
  request_id     INTEGER PRIMARY KEY AUTOINCREMENT,
  action         TEXT NOT NULL CHECK (action IN ('retry', 'discard', 'reschedule', 'dead_letter')),
  event_id       TEXT NOT NULL,
  destination    TEXT NOT NULL DEFAULT '',
  -- Seconds.
  delay          REAL NOT NULL DEFAULT 0 CHECK (delay >= 0),
  requested_by   TEXT NOT NULL DEFAULT '',
  requested_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  done_at        TEXT,
  result         TEXT,
  -- audit.audit_id of the bulk action that it belongs to; NULL: it gets an audit entry of its own.
  bulk_action_id INTEGER
);
CREATE INDEX {prefix}request_open_idx ON {request} (request_id) WHERE done_at IS NULL;
CREATE INDEX {prefix}request_event_idx ON {request} (event_id, request_id) WHERE done_at IS NULL;

-- ---------------------------------------------------------------------------------------------------------------------
-- audit: what operators did

CREATE TABLE {audit} (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
  at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  who      TEXT NOT NULL DEFAULT '',
  -- retry, discard, reschedule, dead_letter, edit, replay, override, drain, prune, requeue
  what     TEXT NOT NULL,
  -- An event id, a destination, a relay, a queue, or the filter of a bulk action.
  subject  TEXT NOT NULL DEFAULT '',
  count    INTEGER NOT NULL DEFAULT 1,
  detail   TEXT NOT NULL DEFAULT '{}'
);

-- ---------------------------------------------------------------------------------------------------------------------
-- sample: statistics that relays report every ten seconds

CREATE TABLE {sample} (
  at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  relay       TEXT NOT NULL,
  -- '*' for the backlog of the outbox.
  destination TEXT NOT NULL,
  statistics  TEXT NOT NULL
);
CREATE INDEX {prefix}sample_at_idx ON {sample} (at);

-- ---------------------------------------------------------------------------------------------------------------------
-- inbox: the events that each consumer has processed

CREATE TABLE {inbox} (
  consumer    TEXT NOT NULL,
  event_id    TEXT NOT NULL,
  received_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX {prefix}inbox_at_idx ON {inbox} (received_at);

-- ---------------------------------------------------------------------------------------------------------------------
-- inbox_statistics: what each consumer did, by the hour

CREATE TABLE {inbox_statistics} (
  consumer       TEXT NOT NULL,
  hour           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:00:00.000Z', 'now')),
  processed      INTEGER NOT NULL DEFAULT 0,
  duplicates     INTEGER NOT NULL DEFAULT 0,
  failures       INTEGER NOT NULL DEFAULT 0,
  dead_lettered  INTEGER NOT NULL DEFAULT 0,
  last_error     TEXT,
  last_failed_at TEXT,
  PRIMARY KEY (consumer, hour)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- ledger: the sends that were started, with their results; written by a store with ledger=True

CREATE TABLE {ledger} (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT NOT NULL,
  destination  TEXT NOT NULL DEFAULT '',
  status       TEXT NOT NULL CHECK (status IN ('PROCESSING', 'SUCCESS', 'FAILED')),
  created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  processed_at TEXT,
  -- Which send of the message was started last: it tells a send that was never settled from an earlier one. NULL: none, or
  -- an operator retried the event.
  send_number  INTEGER,
  UNIQUE (event_id, destination)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- event: every event, pending, delivered or dead-lettered. For operators and read-only; commands read the tables.

-- A payload that is not JSON is NULL, beside its bytes. json_valid ends at a NUL, hence the search for it.
-- The content type follows the rule of `is_json` in pillarbox/core/text.py; LIKE ignores case.
CREATE VIEW {event} AS
SELECT m.id, m.event_id, m.event_type, m.aggregate_type, m.aggregate_id, m.key, m.destination,
       CASE WHEN m.held = 'blocked' THEN 'FAILED' WHEN m.locked IS NULL THEN 'PENDING' ELSE 'PROCESSING' END AS status,
       CASE WHEN (lower(trim(substr(m.content_type, 1, instr(m.content_type || ';', ';') - 1))) IN ('application/json', 'text/json')
                  OR trim(substr(m.content_type, 1, instr(m.content_type || ';', ';') - 1)) LIKE '%+json')
                 AND json_valid(CAST(m.payload AS TEXT))
                 AND instr(CAST(m.payload AS BLOB), x'00') = 0
            THEN CAST(m.payload AS TEXT) END AS payload,
       CAST(m.payload AS BLOB) AS payload_bytes, m.content_type, m.headers, m.schema_version,
       m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at AS created_at,
       NULL AS published_at, m.attempts,
       -- A retry by an operator counts a deferral without a send.
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END AS retry_count,
       coalesce(m.last_error, o.last_error) AS last_error, m.last_attempt_at,
       CASE WHEN m.held IS NOT 'blocked' THEN coalesce(m.available_at, o.next_attempt_at) END AS next_retry_at,
       json_extract(m.locked, '$[0]') AS locked_by, json_extract(m.locked, '$[1]') AS locked_at
  FROM (SELECT w.*,
               (SELECT json_array(ltrim(r.name || ' ' || r.id), json_extract(h.value, '$[2]'))
                  FROM {relay} AS r, json_each(r.in_flight) AS h
                 WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
                   AND json_extract(h.value, '$[0]') = w.event_id
                   AND w.destination IN ('', json_extract(h.value, '$[1]'))
                 LIMIT 1) AS locked
          FROM {message} AS w) AS m
  -- In an outage an event shows the error and the next attempt of its destination, although it was not sent yet. While no relay
  -- can send anywhere, events without a destination show those of the destination that is attempted next.
  LEFT JOIN (
    SELECT d.destination, d.last_error, d.next_attempt_at FROM {destination} AS d
    UNION ALL
    SELECT * FROM (SELECT '', d.last_error, d.next_attempt_at FROM {destination} AS d
                    WHERE d.last_error IS NOT NULL
                      AND EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                   WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AND b.key = d.destination AND b.value <> 'closed')
                      AND NOT EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                       WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AND b.value = 'closed')
                    ORDER BY d.next_attempt_at LIMIT 1)) AS o
    ON o.destination = m.destination AND (m.destination = '' OR m.held IS 'parked' OR m.deferrals > 0)
       AND coalesce(m.held, '') NOT IN ('blocked', 'waiting')
UNION ALL
SELECT h.id, h.event_id, h.event_type, h.aggregate_type, h.aggregate_id, h.key, h.destination,
       'PUBLISHED',
       CASE WHEN (lower(trim(substr(h.content_type, 1, instr(h.content_type || ';', ';') - 1))) IN ('application/json', 'text/json')
                  OR trim(substr(h.content_type, 1, instr(h.content_type || ';', ';') - 1)) LIKE '%+json')
                 AND json_valid(CAST(h.payload AS TEXT))
                 AND instr(CAST(h.payload AS BLOB), x'00') = 0
            THEN CAST(h.payload AS TEXT) END,
       CAST(h.payload AS BLOB), h.content_type, h.headers, h.schema_version,
       h.correlation_id, h.causation_id, h.trace_id, h.occurred_at, h.recorded_at,
       h.published_at, h.attempts, CASE WHEN h.last_attempt_at IS NULL THEN 0 ELSE h.attempts + h.deferrals END,
       h.last_error, h.last_attempt_at,
       NULL, NULL, NULL
  FROM {history} AS h
UNION ALL
SELECT d.id, d.event_id, d.event_type, d.aggregate_type, d.aggregate_id, d.key, d.destination,
       'FAILED',
       CASE WHEN (lower(trim(substr(d.content_type, 1, instr(d.content_type || ';', ';') - 1))) IN ('application/json', 'text/json')
                  OR trim(substr(d.content_type, 1, instr(d.content_type || ';', ';') - 1)) LIKE '%+json')
                 AND json_valid(CAST(d.payload AS TEXT))
                 AND instr(CAST(d.payload AS BLOB), x'00') = 0
            THEN CAST(d.payload AS TEXT) END,
       CAST(d.payload AS BLOB), d.content_type, d.headers, d.schema_version,
       d.correlation_id, d.causation_id, d.trace_id, d.occurred_at, d.recorded_at,
       NULL, d.attempts, CASE WHEN d.last_attempt_at IS NULL THEN 0 ELSE d.attempts + d.deferrals END,
       d.error, d.last_attempt_at,
       NULL, NULL, NULL
  FROM {dead_letter} AS d;
