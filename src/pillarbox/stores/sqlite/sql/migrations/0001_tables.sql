-- The tables of the outbox and the inbox: a small hot table, its history, its dead letters, and who works on it.

-- Times are text, ISO-8601 in UTC with milliseconds and a Z, so that comparing text compares times.
CREATE TABLE {message} (
  -- AUTOINCREMENT: a plain rowid would begin again once the table is empty, and order with it.
  row_id          INTEGER PRIMARY KEY AUTOINCREMENT,
  -- Never given by a producer: copies of one event for several destinations share the place of their original.
  shared_id           INTEGER,
  id              INTEGER GENERATED ALWAYS AS (coalesce(shared_id, row_id)) VIRTUAL,
  -- A UUIDv7: milliseconds since 1970, the version, random bits with the variant before them.
  event_id        TEXT NOT NULL DEFAULT (lower(printf('%08x-%04x-7%s-%s%s-%s',
                    (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) >> 16,
                    (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) & 65535,
                    substr(hex(randomblob(2)), 2), substr('89ab', 1 + (random() & 3), 1),
                    substr(hex(randomblob(2)), 2), hex(randomblob(6))))),
  destination     TEXT NOT NULL DEFAULT '',
  event_type      TEXT NOT NULL,
  aggregate_type  TEXT,
  aggregate_id    TEXT,
  ordering_key    TEXT,
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
  available_at    TEXT,
  held            TEXT,
  attempts        INTEGER NOT NULL DEFAULT 0,
  deferrals           INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT,
  first_failed_at TEXT,
  last_attempt_at TEXT,
  UNIQUE (event_id, destination),
  -- What a broker or a reader could choke on later would stop everything: it is refused at the door.
  -- GLOB ends at a NUL, hence the search for char(0) beside it.
  CONSTRAINT {prefix}message_event_id_ck CHECK (
    typeof(event_id) = 'text' AND length(CAST(event_id AS BLOB)) BETWEEN 1 AND 200
    AND event_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*' AND instr(event_id, char(0)) = 0),
  CONSTRAINT {prefix}message_event_type_ck CHECK (
    typeof(event_type) = 'text' AND length(CAST(event_type AS BLOB)) BETWEEN 1 AND 255
    AND event_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
    AND instr(event_type, char(0)) = 0),
  CONSTRAINT {prefix}message_aggregate_type_ck CHECK (aggregate_type IS NULL OR (
    typeof(aggregate_type) = 'text' AND length(CAST(aggregate_type AS BLOB)) <= 255
    AND aggregate_type NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
    AND instr(aggregate_type, char(0)) = 0)),
  CONSTRAINT {prefix}message_aggregate_id_ck CHECK (aggregate_id IS NULL OR (
    typeof(aggregate_id) = 'text' AND length(CAST(aggregate_id AS BLOB)) <= 255
    AND aggregate_id NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
    AND instr(aggregate_id, char(0)) = 0)),
  CONSTRAINT {prefix}message_ordering_key_ck CHECK (ordering_key IS NULL OR (
    typeof(ordering_key) = 'text' AND length(CAST(ordering_key AS BLOB)) <= 255
    AND ordering_key NOT GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'
    AND instr(ordering_key, char(0)) = 0)),
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
  -- The way through julianday turns a 30th of February into a 2nd of March, which is not what was written.
  CONSTRAINT {prefix}message_occurred_ck CHECK (
    (occurred_at GLOB
      '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
     -- Nobody compares these, so they may be as exact as the event was.
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

-- The reader's way.
CREATE INDEX {prefix}message_ready_idx ON {message} (id)
  WHERE held IS NULL AND available_at IS NULL;
-- Retries and delayed events by their time.
CREATE INDEX {prefix}message_due_idx ON {message} (available_at, id)
  WHERE held IS NULL AND available_at IS NOT NULL;
-- Each line's heads: what holds later messages of a key back.
CREATE INDEX {prefix}message_holding_idx ON {message} (key, destination, id)
  WHERE held IN ('parked', 'blocked') OR (held IS NULL AND available_at IS NOT NULL AND attempts + deferrals > 0);
-- Each line behind its heads, in order.
CREATE INDEX {prefix}message_waiting_idx ON {message} (key, destination, id)
  WHERE held = 'waiting';
-- Delayed events of a key: they stand in the way only once they are due.
CREATE INDEX {prefix}message_delayed_idx ON {message} (key, available_at)
  WHERE held IS NULL AND available_at IS NOT NULL AND attempts + deferrals = 0;
-- What waits for a destination to open again.
CREATE INDEX {prefix}message_parked_idx ON {message} (destination, id)
  WHERE held = 'parked';
-- Copies by the place they share.
CREATE INDEX {prefix}message_shared_id_idx ON {message} (shared_id, destination)
  WHERE shared_id IS NOT NULL;

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
  deferrals           INTEGER NOT NULL,
  last_error      TEXT,
  last_attempt_at TEXT,
  published_at    TEXT NOT NULL
);
CREATE INDEX {prefix}history_event_id_idx ON {history} (event_id);
CREATE INDEX {prefix}history_published_at_idx ON {history} (published_at);

CREATE TABLE {dead_letter} (
  dead_letter_id         INTEGER PRIMARY KEY AUTOINCREMENT,
  id              INTEGER NOT NULL,
  event_id        TEXT NOT NULL,
  destination     TEXT NOT NULL,
  event_type      TEXT NOT NULL,
  aggregate_type  TEXT,
  aggregate_id    TEXT,
  ordering_key    TEXT,
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
  deferrals           INTEGER NOT NULL,
  error           TEXT NOT NULL,
  first_failed_at TEXT,
  last_attempt_at TEXT,
  dead_lettered_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX {prefix}dead_letter_event_id_idx ON {dead_letter} (event_id);
CREATE INDEX {prefix}dead_letter_at_idx ON {dead_letter} (dead_lettered_at);

CREATE TABLE {relay} (
  id           TEXT PRIMARY KEY NOT NULL,
  name         TEXT NOT NULL DEFAULT '',
  host         TEXT NOT NULL DEFAULT '',
  version      TEXT NOT NULL DEFAULT '',
  started_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  lease_until  TEXT NOT NULL,
  asleep_until TEXT,
  -- Messages in hand for longer than a second: [[event_id, destination, since], …]
  in_flight      TEXT NOT NULL DEFAULT '[]',
  -- Each relay's own breakers, destination → state, so that the others see who can send.
  breakers     TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE {lane} (
  lane    INTEGER PRIMARY KEY,
  owner   TEXT,
  epoch   INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0
);
INSERT INTO {lane} (lane) VALUES (0);

CREATE TABLE {destination} (
  destination TEXT PRIMARY KEY NOT NULL,
  paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  breaker     TEXT CHECK (breaker IN ('open', 'closed')),
  rate_limit  REAL,
  last_error  TEXT,
  next_attempt_at TEXT,
  changed_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  changed_by  TEXT
);

CREATE TABLE {attempt} (
  attempt_id   INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT NOT NULL,
  destination  TEXT NOT NULL,
  attempt      INTEGER NOT NULL,
  counted      INTEGER NOT NULL CHECK (counted IN (0, 1)),
  error        TEXT NOT NULL,
  attempted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX {prefix}attempt_event_id_idx ON {attempt} (event_id);
CREATE INDEX {prefix}attempt_at_idx ON {attempt} (attempted_at);

CREATE TABLE {sample} (
  minute      TEXT NOT NULL,
  relay       TEXT NOT NULL,
  destination TEXT NOT NULL,
  statistics     TEXT NOT NULL,
  PRIMARY KEY (minute, relay, destination)
);

CREATE TABLE {request} (
  request_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  action      TEXT NOT NULL CHECK (action IN ('retry', 'discard', 'reschedule')),
  event_id    TEXT NOT NULL,
  destination TEXT NOT NULL DEFAULT '',
  delay       REAL NOT NULL DEFAULT 0 CHECK (delay >= 0),
  requested_by    TEXT NOT NULL DEFAULT '',
  requested_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  done_at     TEXT,
  result      TEXT
);
CREATE INDEX {prefix}request_open_idx ON {request} (request_id) WHERE done_at IS NULL;

CREATE TABLE {audit} (
  audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
  at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  who      TEXT NOT NULL DEFAULT '',
  what     TEXT NOT NULL,
  subject  TEXT NOT NULL DEFAULT '',
  count    INTEGER NOT NULL DEFAULT 1,
  detail   TEXT NOT NULL DEFAULT '{}'
);

CREATE TABLE {inbox_receipt} (
  consumer    TEXT NOT NULL,
  event_id    TEXT NOT NULL,
  received_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  PRIMARY KEY (consumer, event_id)
);
CREATE INDEX {stem}inbox_receipt_at_idx ON {inbox_receipt} (received_at);

CREATE TABLE {processed_event} (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id     TEXT NOT NULL,
  destination  TEXT NOT NULL DEFAULT '',
  status       TEXT NOT NULL CHECK (status IN ('PROCESSING', 'SUCCESS', 'FAILED')),
  created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  processed_at TEXT,
  UNIQUE (event_id, destination)
);
