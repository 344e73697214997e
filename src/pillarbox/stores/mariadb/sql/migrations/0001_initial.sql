-- The tables and the view of one outbox and its inbox.
--
--   producers write   message, key_lock (strict order); consumers: inbox, inbox_statistics
--   relays write      history, dead_letter, attempt, destination, relay, lane, sample, ledger
--   operators write   request, audit, destination
--
-- MariaDB commits after each statement that changes a table: each statement here can be repeated, so that an interrupted
-- migration continues. There are no triggers and no functions, because with a binary log a server creates these only for
-- administrators. A released migration never changes: a later release adds a file. See docs/reference/schema.md.

-- ---------------------------------------------------------------------------------------------------------------------
-- message: events that are not delivered yet, one row per destination once a route is found
--
-- Texts compare by their bytes, trailing spaces included. MariaDB has no partial indexes: the column `state` stands in.

CREATE TABLE IF NOT EXISTS {message} (
  -- The sequence. Copies of one event for several destinations share it, so it is not unique.
  id              BIGINT NOT NULL AUTO_INCREMENT,
  event_id        VARCHAR(200) NOT NULL DEFAULT (uuid()),
  -- '' until the relay has found a route.
  destination     VARCHAR(255) NOT NULL DEFAULT '',
  event_type      VARCHAR(255) NOT NULL,
  aggregate_type  VARCHAR(255),
  aggregate_id    VARCHAR(255),
  ordering_key    VARCHAR(255),
  -- Events of one key are sent in order; NULL means no order. Binary: an index with 511 characters of text would be too large.
  `key`           VARBINARY(511) AS (CAST(coalesce(ordering_key, concat(aggregate_type, _utf8mb4':', aggregate_id), aggregate_id) AS BINARY)) STORED,
  -- The unit of work that one relay owns.
  lane            TINYINT AS (crc32(coalesce(ordering_key, concat(aggregate_type, _utf8mb4':', aggregate_id), aggregate_id, event_id)) & 63) STORED,
  payload         LONGBLOB NOT NULL,
  content_type    VARCHAR(255) NOT NULL DEFAULT 'application/json',
  headers         LONGTEXT NOT NULL DEFAULT '{}',
  schema_version  INT NOT NULL DEFAULT 1,
  correlation_id  TEXT,
  causation_id    TEXT,
  trace_id        TEXT,
  -- All times are in UTC.
  occurred_at     DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  recorded_at     DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  -- NULL: now. Otherwise the time of the retry or of the delayed event.
  available_at    DATETIME(6),
  -- waiting: for an earlier event of its key; parked: its destination is unavailable, paused or rate-limited; blocked: an
  -- operator must decide.
  held            VARCHAR(7),
  -- Failed sends that count towards max_attempts, and failed sends that do not. An operator's retry sets deferrals to 1 at
  -- least, so that the message keeps its position in its key.
  attempts        INT NOT NULL DEFAULT 0,
  deferrals       INT NOT NULL DEFAULT 0,
  last_error      TEXT,
  first_failed_at DATETIME(6),
  last_attempt_at DATETIME(6),
  -- 0 ready, 1 delayed event, 2 retry, 3 waiting, 4 parked, 5 blocked.
  state           TINYINT AS (CASE WHEN held IS NULL
                                   THEN CASE WHEN available_at IS NULL THEN 0 WHEN attempts + deferrals = 0 THEN 1 ELSE 2 END
                                   WHEN held = 'waiting' THEN 3 WHEN held = 'parked' THEN 4 ELSE 5 END) STORED,
  -- When a delayed event is due.
  due_at          DATETIME(6) AS (CASE WHEN held IS NULL AND attempts + deferrals = 0 THEN available_at END) STORED,
  -- The bytes that count towards the bound of a fetch.
  size            BIGINT AS (octet_length(payload) + octet_length(headers) + coalesce(octet_length(correlation_id), 0)
                             + coalesce(octet_length(causation_id), 0) + coalesce(octet_length(trace_id), 0)) STORED,
  PRIMARY KEY (id, destination),
  UNIQUE KEY event_destination_uq (event_id, destination),
  -- Ready messages in order, and retries and delayed events by their time.
  KEY fetch_idx (lane, state, available_at, id, size),
  -- Each ordering queue in order: what holds later messages back, what waits, and delayed events by their time.
  KEY queue_idx (state, lane, `key`, destination, due_at, id),
  -- Messages that wait for a destination to become available.
  KEY parked_idx (lane, state, destination, id),
  -- Lists of pending events, and of blocked ones.
  KEY recorded_idx (recorded_at, id, destination),
  KEY state_recorded_idx (state, recorded_at, id, destination),
  -- These constraints reject at the INSERT what a broker, an index or Python would reject later, when it would stop a lane.
  CONSTRAINT message_event_id_ck CHECK (octet_length(event_id) BETWEEN 1 AND 200 AND event_id NOT REGEXP '[[:cntrl:]]'),
  CONSTRAINT message_texts_ck CHECK (
    octet_length(event_type) BETWEEN 1 AND 255 AND event_type NOT REGEXP '[[:cntrl:]]'
    AND octet_length(destination) <= 255 AND octet_length(content_type) <= 255
    AND (aggregate_type IS NULL OR octet_length(aggregate_type) <= 255 AND aggregate_type NOT REGEXP '[[:cntrl:]]')
    AND (aggregate_id IS NULL OR octet_length(aggregate_id) <= 255 AND aggregate_id NOT REGEXP '[[:cntrl:]]')
    AND (ordering_key IS NULL OR octet_length(ordering_key) <= 255 AND ordering_key NOT REGEXP '[[:cntrl:]]')),
  CONSTRAINT message_headers_ck CHECK (json_valid(headers) AND json_type(headers) = 'OBJECT'),
  CONSTRAINT message_times_ck CHECK (
    occurred_at > '0001-01-01' AND occurred_at < '9999-12-31 23:59:59.999999'
    AND recorded_at > '0001-01-01' AND recorded_at < '9999-12-31 23:59:59.999999'
    AND (available_at IS NULL OR available_at > '0001-01-01' AND available_at < '9999-12-31 23:59:59.999999')
    AND (first_failed_at IS NULL OR first_failed_at > '0001-01-01' AND first_failed_at < '9999-12-31 23:59:59.999999')
    AND (last_attempt_at IS NULL OR last_attempt_at > '0001-01-01' AND last_attempt_at < '9999-12-31 23:59:59.999999')),
  -- A relay adds to the counters, and their sum must remain an integer.
  CONSTRAINT message_counters_ck CHECK (attempts BETWEEN 0 AND 1000000000 AND deferrals BETWEEN 0 AND 1000000000),
  CONSTRAINT message_held_ck CHECK (held IN ('waiting', 'parked', 'blocked')),
  -- No fetch would find a waiting message without a key.
  CONSTRAINT message_waiting_ck CHECK (held IS NULL OR held <> 'waiting' OR coalesce(ordering_key, aggregate_id) IS NOT NULL)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- Producers with strict order lock the row of their key until they commit.
CREATE TABLE IF NOT EXISTS {key_lock} (
  slot SMALLINT NOT NULL PRIMARY KEY
) ENGINE = InnoDB;
INSERT IGNORE INTO {key_lock} (slot)
WITH RECURSIVE digit AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM digit WHERE n < 31)
SELECT high.n * 32 + low.n FROM digit AS high CROSS JOIN digit AS low;

-- ---------------------------------------------------------------------------------------------------------------------
-- history: delivered messages, partitioned by day (UTC); `later` has the days for which no partition was made in time

CREATE TABLE IF NOT EXISTS {history} (
  id              BIGINT NOT NULL,
  event_id        VARCHAR(200) NOT NULL,
  destination     VARCHAR(255) NOT NULL,
  event_type      VARCHAR(255) NOT NULL,
  aggregate_type  VARCHAR(255),
  aggregate_id    VARCHAR(255),
  `key`           VARBINARY(511),
  payload         LONGBLOB NOT NULL,
  content_type    VARCHAR(255) NOT NULL,
  headers         LONGTEXT NOT NULL,
  schema_version  INT NOT NULL,
  correlation_id  TEXT,
  causation_id    TEXT,
  trace_id        TEXT,
  occurred_at     DATETIME(6) NOT NULL,
  recorded_at     DATETIME(6) NOT NULL,
  attempts        INT NOT NULL,
  deferrals       INT NOT NULL,
  last_error      TEXT,
  last_attempt_at DATETIME(6),
  published_at    DATETIME(6) NOT NULL,
  -- Duration of the send; NULL if nothing was sent, because the ledger knew the event.
  seconds         DOUBLE,
  -- Replays, in the order of delivery. A unique key must contain the column of the partitions.
  PRIMARY KEY (published_at, id, destination),
  KEY event_id_idx (event_id),
  -- Lists by the time of recording, by type and by key.
  KEY recorded_idx (recorded_at, id, destination),
  KEY type_idx (event_type, recorded_at, id, destination),
  KEY key_idx (`key`, recorded_at, id, destination)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin
PARTITION BY RANGE COLUMNS (published_at) (PARTITION later VALUES LESS THAN (MAXVALUE));

-- ---------------------------------------------------------------------------------------------------------------------
-- dead_letter: messages without attempts left

CREATE TABLE IF NOT EXISTS {dead_letter} (
  dead_letter_id   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id               BIGINT NOT NULL,
  event_id         VARCHAR(200) NOT NULL,
  destination      VARCHAR(255) NOT NULL,
  event_type       VARCHAR(255) NOT NULL,
  aggregate_type   VARCHAR(255),
  aggregate_id     VARCHAR(255),
  ordering_key     VARCHAR(255),
  `key`            VARBINARY(511),
  payload          LONGBLOB NOT NULL,
  content_type     VARCHAR(255) NOT NULL,
  headers          LONGTEXT NOT NULL,
  schema_version   INT NOT NULL,
  correlation_id   TEXT,
  causation_id     TEXT,
  trace_id         TEXT,
  occurred_at      DATETIME(6) NOT NULL,
  recorded_at      DATETIME(6) NOT NULL,
  attempts         INT NOT NULL,
  deferrals        INT NOT NULL,
  error            TEXT NOT NULL,
  first_failed_at  DATETIME(6),
  last_attempt_at  DATETIME(6),
  dead_lettered_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  KEY event_id_idx (event_id),
  KEY at_idx (dead_lettered_at),
  -- Lists by type, by key and by the time of recording.
  KEY type_idx (event_type, dead_letter_id),
  KEY key_idx (`key`, dead_letter_id),
  KEY recorded_idx (recorded_at, id, destination)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- attempt: failed sends only

CREATE TABLE IF NOT EXISTS {attempt} (
  attempt_id   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id     VARCHAR(200) NOT NULL,
  destination  VARCHAR(255) NOT NULL,
  -- The number of the send, from 1.
  attempt      INT NOT NULL,
  -- Whether it counts towards max_attempts; otherwise it is a deferral.
  counted      BOOLEAN NOT NULL,
  error        TEXT NOT NULL,
  attempted_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  -- Duration of the send; NULL if nothing was sent.
  seconds      DOUBLE,
  KEY event_id_idx (event_id, attempt_id),
  KEY at_idx (attempted_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- relay: one row per running relay

CREATE TABLE IF NOT EXISTS {relay} (
  id                 VARCHAR(255) NOT NULL PRIMARY KEY,
  name               VARCHAR(255) NOT NULL DEFAULT '',
  host               VARCHAR(255) NOT NULL DEFAULT '',
  version            VARCHAR(255) NOT NULL DEFAULT '',
  started_at         DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  lease_until        DATETIME(6) NOT NULL,
  -- The database session of its heartbeat, which holds a lock. When the lock is free, other relays need not wait for the lease.
  session            VARCHAR(255),
  -- Messages in flight for longer than a second: [[event_id, destination, since], …]
  in_flight          LONGTEXT NOT NULL DEFAULT '[]' CHECK (json_valid(in_flight)),
  -- Its circuit breakers, destination → state, so that other relays and operators see where it can send.
  breakers           LONGTEXT NOT NULL DEFAULT '{}' CHECK (json_valid(breakers)),
  -- The same as [[destination, state], …]: SQL cannot read the names in an object.
  breaker_states     LONGTEXT NOT NULL DEFAULT '[]' CHECK (json_valid(breaker_states)),
  -- Why it makes no progress although it could; '' otherwise.
  stalled            TEXT NOT NULL DEFAULT '',
  -- The operator who requested that it drains.
  drain_requested_by VARCHAR(255)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- lane: which relay owns which part of the messages

CREATE TABLE IF NOT EXISTS {lane} (
  lane    TINYINT NOT NULL PRIMARY KEY,
  -- relay.id; NULL: no owner.
  owner   VARCHAR(255),
  -- Grows with each change of the owner. A write under an old epoch is rejected.
  epoch   BIGINT NOT NULL DEFAULT 0,
  -- Owners that crashed since the last settlement: the crash guard quarantines messages.
  crashes INT NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
INSERT IGNORE INTO {lane} (lane)
WITH RECURSIVE number AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM number WHERE n < 63)
SELECT n FROM number;

-- ---------------------------------------------------------------------------------------------------------------------
-- destination: what operators override, and what relays report

CREATE TABLE IF NOT EXISTS {destination} (
  -- '*' stands for all.
  destination     VARCHAR(255) NOT NULL PRIMARY KEY,
  -- Operators: nothing is sent.
  paused          BOOLEAN NOT NULL DEFAULT false,
  -- Operators: forced state of the circuit breaker; NULL: automatic.
  breaker         VARCHAR(6) CHECK (breaker IN ('open', 'closed')),
  -- Operators: messages per second of all relays together; NULL: as in the settings.
  rate_limit      DOUBLE,
  changed_at      DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  changed_by      VARCHAR(255),
  -- Relays: NULL while the destination is available.
  last_error      TEXT,
  next_attempt_at DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- request: what operators request for pending messages; the owner of the lane executes it

CREATE TABLE IF NOT EXISTS {request} (
  request_id     BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  action         VARCHAR(11) NOT NULL CHECK (action IN ('retry', 'discard', 'reschedule', 'dead_letter')),
  event_id       VARCHAR(200) NOT NULL,
  destination    VARCHAR(255) NOT NULL DEFAULT '',
  -- Seconds; at most a hundred years. A time out of range would fail every relay that executes the request.
  delay          DOUBLE NOT NULL DEFAULT 0 CHECK (delay BETWEEN 0 AND 3155760000),
  requested_by   VARCHAR(255) NOT NULL DEFAULT (current_user()),
  requested_at   DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  done_at        DATETIME(6),
  result         TEXT,
  -- audit.audit_id of the bulk action that it belongs to; NULL: it gets an audit entry of its own.
  bulk_action_id BIGINT,
  KEY open_idx (done_at, request_id),
  KEY event_idx (event_id, done_at, request_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- audit: what operators did

CREATE TABLE IF NOT EXISTS {audit} (
  audit_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at       DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  who      VARCHAR(255) NOT NULL DEFAULT (current_user()),
  -- retry, discard, reschedule, dead_letter, edit, replay, override, drain, prune, requeue
  what     VARCHAR(255) NOT NULL,
  -- An event id, a destination, a relay, a queue, or the filter of a bulk action.
  subject  TEXT NOT NULL DEFAULT '',
  count    BIGINT NOT NULL DEFAULT 1,
  detail   LONGTEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- sample: statistics that relays report every ten seconds

CREATE TABLE IF NOT EXISTS {sample} (
  sample_id   BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at          DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  relay       VARCHAR(255) NOT NULL,
  -- '*' for the backlog of the outbox.
  destination VARCHAR(255) NOT NULL,
  statistics  LONGTEXT NOT NULL CHECK (json_valid(statistics)),
  KEY at_idx (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- inbox: the events that each consumer has processed

CREATE TABLE IF NOT EXISTS {inbox} (
  consumer    VARCHAR(255) NOT NULL,
  event_id    VARCHAR(200) NOT NULL,
  received_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (consumer, event_id),
  KEY at_idx (received_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- inbox_statistics: what each consumer did, by the hour

CREATE TABLE IF NOT EXISTS {inbox_statistics} (
  consumer       VARCHAR(255) NOT NULL,
  hour           DATETIME(6) NOT NULL DEFAULT (CAST(date_format(utc_timestamp(), '%Y-%m-%d %H:00:00') AS DATETIME)),
  processed      BIGINT NOT NULL DEFAULT 0,
  duplicates     BIGINT NOT NULL DEFAULT 0,
  failures       BIGINT NOT NULL DEFAULT 0,
  dead_lettered  BIGINT NOT NULL DEFAULT 0,
  last_error     TEXT,
  last_failed_at DATETIME(6),
  PRIMARY KEY (consumer, hour)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- ledger: the sends that were started, with their results; written by a store with ledger=True

CREATE TABLE IF NOT EXISTS {ledger} (
  id           BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  event_id     VARCHAR(200) NOT NULL,
  destination  VARCHAR(255) NOT NULL DEFAULT '',
  status       VARCHAR(10) NOT NULL CHECK (status IN ('PROCESSING', 'SUCCESS', 'FAILED')),
  created_at   DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  updated_at   DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6)),
  processed_at DATETIME(6),
  -- Which send of the message was started last: it tells a send that was never settled from an earlier one. NULL: none, or
  -- an operator retried the event.
  send_number  BIGINT,
  UNIQUE KEY event_destination_uq (event_id, destination)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- ---------------------------------------------------------------------------------------------------------------------
-- event: every event, pending, delivered or dead-lettered. For operators and read-only; commands read the tables.

-- A payload that is not JSON is NULL, beside its bytes. The content type follows the rule of `is_json` in
-- pillarbox/core/text.py.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW {event} AS
SELECT m.id, m.event_id, m.event_type, m.aggregate_type, m.aggregate_id, CONVERT(m.`key` USING utf8mb4) AS `key`, m.destination,
       CASE WHEN m.held = 'blocked' THEN 'FAILED' WHEN h.since IS NOT NULL THEN 'PROCESSING' ELSE 'PENDING' END AS status,
       CASE WHEN m.content_type REGEXP '(?i)^\\s*((application|text)/json|[^;]*\\+json)\\s*(;|$)'
             AND json_valid(CONVERT(m.payload USING utf8mb4)) THEN CONVERT(m.payload USING utf8mb4) END AS payload,
       m.payload AS payload_bytes, m.content_type, m.headers,
       m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at AS created_at,
       CAST(NULL AS DATETIME(6)) AS published_at, m.attempts,
       -- A retry by an operator counts a deferral without a send.
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END AS retry_count,
       coalesce(m.last_error, d.last_error) AS last_error, m.last_attempt_at,
       CASE WHEN m.held = 'blocked' THEN NULL ELSE coalesce(m.available_at, d.next_attempt_at) END AS next_retry_at,
       h.locked_by, h.since AS locked_at
  FROM {message} AS m
  -- In an outage an event shows the error and the next attempt of its destination, although it was not sent yet. While no relay
  -- can send anywhere, events without a destination show those of the destination that is attempted next.
  LEFT JOIN (
    SELECT d.destination, d.last_error, d.next_attempt_at FROM {destination} AS d
    UNION ALL
    (SELECT '', d.last_error, d.next_attempt_at FROM {destination} AS d
      WHERE d.last_error IS NOT NULL
        AND EXISTS (SELECT 1 FROM {relay} AS r, JSON_TABLE(r.breaker_states, '$[*]' COLUMNS (
                      name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[0]', value VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[1]')) AS b
                     WHERE r.lease_until > utc_timestamp(6) AND b.name = d.destination AND b.value <> 'closed')
        AND NOT EXISTS (SELECT 1 FROM {relay} AS r, JSON_TABLE(r.breaker_states, '$[*]' COLUMNS (value VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[1]')) AS b
                         WHERE r.lease_until > utc_timestamp(6) AND b.value = 'closed')
      ORDER BY d.next_attempt_at LIMIT 1)) AS d
    ON d.destination = m.destination AND (m.destination = '' OR m.held = 'parked' OR m.deferrals > 0)
       AND coalesce(m.held, '') NOT IN ('blocked', 'waiting')
  LEFT JOIN (SELECT x.event_id, x.destination, x.since, concat_ws(' ', nullif(r.name, ''), r.id) AS locked_by
               FROM {relay} AS r, JSON_TABLE(r.in_flight, '$[*]' COLUMNS (
                      event_id VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[0]', destination VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[1]', since DATETIME(6) PATH '$[2]')) AS x
              WHERE r.lease_until > utc_timestamp(6)) AS h
    ON h.event_id = m.event_id AND h.destination = m.destination
UNION ALL
SELECT id, event_id, event_type, aggregate_type, aggregate_id, CONVERT(`key` USING utf8mb4), destination, 'PUBLISHED',
       CASE WHEN content_type REGEXP '(?i)^\\s*((application|text)/json|[^;]*\\+json)\\s*(;|$)'
             AND json_valid(CONVERT(payload USING utf8mb4)) THEN CONVERT(payload USING utf8mb4) END,
       payload, content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at,
       published_at, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, last_error, last_attempt_at,
       NULL, NULL, NULL
  FROM {history}
UNION ALL
SELECT id, event_id, event_type, aggregate_type, aggregate_id, CONVERT(`key` USING utf8mb4), destination, 'FAILED',
       CASE WHEN content_type REGEXP '(?i)^\\s*((application|text)/json|[^;]*\\+json)\\s*(;|$)'
             AND json_valid(CONVERT(payload USING utf8mb4)) THEN CONVERT(payload USING utf8mb4) END,
       payload, content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at,
       NULL, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, error, last_attempt_at,
       NULL, NULL, NULL
  FROM {dead_letter};
