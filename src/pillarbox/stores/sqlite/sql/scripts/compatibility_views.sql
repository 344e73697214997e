-- Views under the names, columns and states that other outboxes use, for their producers' INSERTs and their operators' statements:
-- `outbox_events` (PENDING, SENT), `event_outbox` (PENDING, PROCESSED) with `event_outbox_dlq` and `event_outbox_archive`,
-- `outbox_integration_event` (NEW, DONE) and `processed_event`, the ledger.

-- Dead letters that an operator has deleted from `event_outbox` after moving them to `event_outbox_dlq`.
CREATE TABLE IF NOT EXISTS {outbox_moved} (dead_letter_id INTEGER PRIMARY KEY);
DROP TRIGGER IF EXISTS "{prefix}alias_moved";
CREATE TRIGGER "{prefix}alias_moved" AFTER DELETE ON {dead_letter}
BEGIN
  DELETE FROM {outbox_moved} WHERE dead_letter_id = OLD.dead_letter_id;
END;

DROP VIEW IF EXISTS {events_alias};
CREATE VIEW {events_alias} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, payload,
       CASE status WHEN 'PUBLISHED' THEN 'SENT' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       retry_count, next_retry_at, last_error, created_at, published_at AS sent_at, destination
  FROM {event};

DROP VIEW IF EXISTS {outbox_alias};
CREATE VIEW {outbox_alias} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, payload, headers AS metadata,
       CASE status WHEN 'PUBLISHED' THEN 'PROCESSED' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       created_at, published_at, retry_count, last_error, last_attempt_at AS last_retry_at, destination,
       content_type, payload_bytes
  FROM {event} AS e
 WHERE status <> 'FAILED' OR NOT EXISTS (
   SELECT 1 FROM {outbox_moved} JOIN {dead_letter} AS d USING (dead_letter_id)
    WHERE d.event_id = e.event_id AND d.destination = e.destination AND d.id = e.id);

DROP VIEW IF EXISTS {outbox_dlq};
CREATE VIEW {outbox_dlq} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, payload, headers AS metadata, status, created_at,
       published_at, retry_count, last_error, last_attempt_at AS last_retry_at, destination, content_type, payload_bytes
  FROM {event} AS e
 WHERE status = 'FAILED' AND EXISTS (
   SELECT 1 FROM {dead_letter} AS d WHERE d.event_id = e.event_id AND d.destination = e.destination AND d.id = e.id);

CREATE TABLE IF NOT EXISTS {outbox_archive} AS SELECT * FROM {outbox_alias} WHERE 0;

-- FAILED here means that a send failed and the relay retries it at next_retry_at; without that time it is a dead letter or blocked.
DROP VIEW IF EXISTS {integration_event};
CREATE VIEW {integration_event} AS
SELECT event_id AS id, event_type, payload AS payload_json,
       CASE WHEN status = 'PUBLISHED' THEN 'DONE' WHEN status = 'PENDING' AND retry_count = 0 THEN 'NEW'
            WHEN status = 'PENDING' THEN 'FAILED' ELSE status END AS status,
       retry_count AS attempts,
       CASE WHEN status = 'PENDING' AND retry_count > 0 THEN coalesce(next_retry_at, {now}) ELSE next_retry_at END
         AS next_retry_at,
       locked_by, locked_at, occurred_at, correlation_id, trace_id, last_error, created_at,
       published_at AS processed_at, destination
  FROM {event};

-- The ledger.
DROP VIEW IF EXISTS {processed_event};
CREATE VIEW {processed_event} AS
SELECT id, event_id, destination, status, created_at, updated_at, processed_at, send_number FROM {ledger};
CREATE TRIGGER "{prefix}ledger_insert" INSTEAD OF INSERT ON {processed_event}
BEGIN
  INSERT INTO {ledger} (event_id, destination, status, created_at, updated_at, processed_at, send_number)
  VALUES (NEW.event_id, coalesce(NEW.destination, ''), NEW.status, coalesce(NEW.created_at, {now}),
          coalesce(NEW.updated_at, {now}), NEW.processed_at, NEW.send_number);
END;
CREATE TRIGGER "{prefix}ledger_update" INSTEAD OF UPDATE ON {processed_event}
BEGIN
  UPDATE {ledger}
     SET event_id = NEW.event_id, destination = NEW.destination, status = NEW.status, created_at = NEW.created_at,
         updated_at = NEW.updated_at, processed_at = NEW.processed_at, send_number = NEW.send_number
   WHERE id = OLD.id;
END;
CREATE TRIGGER "{prefix}ledger_delete" INSTEAD OF DELETE ON {processed_event}
BEGIN
  DELETE FROM {ledger} WHERE id = OLD.id;
END;

-- A producer inserts new events only: everything about their delivery is the relay's to write.
CREATE TRIGGER "{prefix}events_insert" INSTEAD OF INSERT ON {events_alias}
BEGIN
  SELECT RAISE(ABORT, 'only a new event with status PENDING can be inserted: leave out the columns about its delivery')
   WHERE coalesce(NEW.status, 'PENDING') <> 'PENDING' OR coalesce(NEW.retry_count, 0) <> 0
         OR NEW.last_error IS NOT NULL OR NEW.sent_at IS NOT NULL;
  SELECT RAISE(ABORT, 'the payload is not JSON') WHERE NOT json_valid(NEW.payload);
  SELECT RAISE(ABORT, 'created_at or next_retry_at is not a time that SQLite understands')
   WHERE (NEW.created_at IS NOT NULL AND julianday(NEW.created_at) IS NULL)
         OR (NEW.next_retry_at IS NOT NULL AND julianday(NEW.next_retry_at) IS NULL);
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, payload, occurred_at, recorded_at,
                         available_at)
  VALUES (CAST(coalesce(NEW.event_id, NEW.id, {uuid7}) AS TEXT), coalesce(NEW.destination, ''), NEW.event_type,
          NEW.aggregate_type, CAST(NEW.aggregate_id AS TEXT), NEW.payload,
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.created_at, 'now')),
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.created_at, 'now')),
          strftime('%Y-%m-%dT%H:%M:%fZ', NEW.next_retry_at));
END;

CREATE TRIGGER "{prefix}outbox_insert" INSTEAD OF INSERT ON {outbox_alias}
BEGIN
  SELECT RAISE(ABORT, 'only a new event with status PENDING can be inserted: leave out the columns about its delivery')
   WHERE coalesce(NEW.status, 'PENDING') <> 'PENDING' OR coalesce(NEW.retry_count, 0) <> 0
         OR NEW.last_error IS NOT NULL OR NEW.last_retry_at IS NOT NULL OR NEW.published_at IS NOT NULL;
  SELECT RAISE(ABORT, 'the payload is not JSON') WHERE NOT json_valid(NEW.payload);
  SELECT RAISE(ABORT, 'the metadata is not a JSON object')
   WHERE NEW.metadata IS NOT NULL
         AND CASE WHEN json_valid(NEW.metadata) THEN json_type(NEW.metadata) END IS NOT 'object';
  SELECT RAISE(ABORT, 'created_at is not a time that SQLite understands')
   WHERE NEW.created_at IS NOT NULL AND julianday(NEW.created_at) IS NULL;
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, payload, content_type, headers,
                         correlation_id, trace_id, occurred_at, recorded_at)
  VALUES (CAST(coalesce(NEW.event_id, NEW.id, {uuid7}) AS TEXT), coalesce(NEW.destination, ''), NEW.event_type,
          NEW.aggregate_type, CAST(NEW.aggregate_id AS TEXT), coalesce(NEW.payload, NEW.payload_bytes),
          coalesce(NEW.content_type, 'application/json'),
          json(coalesce(NEW.metadata, '{}')),
          json_extract(NEW.metadata, '$.correlation_id'), json_extract(NEW.metadata, '$.trace_id'),
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.created_at, 'now')),
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.created_at, 'now')));
END;

CREATE TRIGGER "{prefix}integration_insert" INSTEAD OF INSERT ON {integration_event}
BEGIN
  SELECT RAISE(ABORT, 'only a new event with status NEW can be inserted: leave out the columns about its delivery')
   WHERE coalesce(NEW.status, 'NEW') <> 'NEW' OR coalesce(NEW.attempts, 0) <> 0 OR NEW.last_error IS NOT NULL
         OR NEW.locked_by IS NOT NULL OR NEW.locked_at IS NOT NULL OR NEW.processed_at IS NOT NULL;
  SELECT RAISE(ABORT, 'the payload is not JSON') WHERE NOT json_valid(NEW.payload_json);
  SELECT RAISE(ABORT, 'created_at, occurred_at or next_retry_at is not a time that SQLite understands')
   WHERE (NEW.created_at IS NOT NULL AND julianday(NEW.created_at) IS NULL)
         OR (NEW.occurred_at IS NOT NULL AND julianday(NEW.occurred_at) IS NULL)
         OR (NEW.next_retry_at IS NOT NULL AND julianday(NEW.next_retry_at) IS NULL);
  INSERT INTO {message} (event_id, destination, event_type, payload, correlation_id, trace_id, occurred_at, recorded_at,
                         available_at)
  VALUES (CAST(coalesce(NEW.id, {uuid7}) AS TEXT), coalesce(NEW.destination, ''), NEW.event_type, NEW.payload_json,
          NEW.correlation_id, NEW.trace_id,
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.occurred_at, NEW.created_at, 'now')),
          strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(NEW.created_at, 'now')),
          strftime('%Y-%m-%dT%H:%M:%fZ', NEW.next_retry_at));
END;

-- Moving an event to the dead letters by hand: the relay has done it already, or is asked to.
CREATE TRIGGER "{prefix}dlq_insert" INSTEAD OF INSERT ON {outbox_dlq}
BEGIN
  SELECT RAISE(ABORT, 'this event is neither pending nor a dead letter: insert rows of event_outbox here')
   WHERE NOT EXISTS (SELECT 1 FROM {dead_letter} WHERE event_id = NEW.event_id AND destination = NEW.destination)
         AND NOT EXISTS (SELECT 1 FROM {message} WHERE event_id = NEW.event_id AND destination = NEW.destination);
  INSERT INTO {request} (action, event_id, destination)
  SELECT 'dead_letter', m.event_id, m.destination
    FROM {message} AS m
   WHERE m.event_id = NEW.event_id AND m.destination = NEW.destination
         AND NOT EXISTS (SELECT 1 FROM {dead_letter} WHERE event_id = NEW.event_id AND destination = NEW.destination)
         AND NOT EXISTS (SELECT 1 FROM {request} AS r
                          WHERE r.event_id = m.event_id AND r.destination = m.destination
                                AND r.action = 'dead_letter' AND r.done_at IS NULL);
END;

-- Setting a failed event back to its first status by hand: a dead letter goes to the end of its key, what waits is requested.
CREATE TRIGGER "{prefix}events_update" INSTEAD OF UPDATE ON {events_alias}
BEGIN
  SELECT RAISE(ABORT, 'only FAILED to PENDING is possible here: everything else is the relay''s to write')
   WHERE OLD.status <> 'FAILED' OR NEW.status <> 'PENDING';
  {alias_retry};
END;

CREATE TRIGGER "{prefix}outbox_update" INSTEAD OF UPDATE ON {outbox_alias}
BEGIN
  SELECT RAISE(ABORT, 'only FAILED to PENDING is possible here: everything else is the relay''s to write')
   WHERE OLD.status <> 'FAILED' OR NEW.status <> 'PENDING';
  {alias_retry};
END;

CREATE TRIGGER "{prefix}dlq_update" INSTEAD OF UPDATE ON {outbox_dlq}
BEGIN
  SELECT RAISE(ABORT, 'only FAILED to PENDING is possible here: everything else is the relay''s to write')
   WHERE NEW.status <> 'PENDING';
  {alias_retry};
END;

CREATE TRIGGER "{prefix}integration_update" INSTEAD OF UPDATE ON {integration_event}
BEGIN
  SELECT RAISE(ABORT, 'only FAILED to NEW is possible here: everything else is the relay''s to write')
   WHERE OLD.status <> 'FAILED' OR NEW.status <> 'NEW';
  {alias_retry};
END;

-- Deleting by hand: published events leave the history, dead letters leave `event_outbox` for `event_outbox_dlq`.
CREATE TRIGGER "{prefix}events_delete" INSTEAD OF DELETE ON {events_alias}
BEGIN
  SELECT RAISE(ABORT, 'this event is not published: discard it with `pillarbox dead discard`') WHERE OLD.sent_at IS NULL;
  DELETE FROM {history} WHERE event_id = OLD.id AND destination = OLD.destination AND published_at = OLD.sent_at;
END;

CREATE TRIGGER "{prefix}outbox_delete" INSTEAD OF DELETE ON {outbox_alias}
BEGIN
  INSERT OR IGNORE INTO {outbox_moved}
  SELECT dead_letter_id FROM {dead_letter}
   WHERE OLD.status = 'FAILED' AND event_id = OLD.id AND destination = OLD.destination;
  SELECT RAISE(ABORT, 'this event is not published: discard it with `pillarbox dead discard`')
   WHERE OLD.published_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM {dead_letter}
                          WHERE OLD.status = 'FAILED' AND event_id = OLD.id AND destination = OLD.destination)
         AND NOT EXISTS (SELECT 1 FROM {request}
                          WHERE event_id = OLD.id AND destination = OLD.destination AND action = 'dead_letter' AND done_at IS NULL);
  DELETE FROM {history} WHERE event_id = OLD.id AND destination = OLD.destination AND published_at = OLD.published_at;
END;

CREATE TRIGGER "{prefix}integration_delete" INSTEAD OF DELETE ON {integration_event}
BEGIN
  SELECT RAISE(ABORT, 'this event is not published: discard it with `pillarbox dead discard`')
   WHERE OLD.processed_at IS NULL;
  DELETE FROM {history} WHERE event_id = OLD.id AND destination = OLD.destination AND published_at = OLD.processed_at;
END;

-- Deleting from the dead letters discards them.
CREATE TRIGGER "{prefix}dlq_delete" INSTEAD OF DELETE ON {outbox_dlq}
BEGIN
  DELETE FROM {dead_letter} WHERE event_id = OLD.event_id AND destination = OLD.destination;
  INSERT INTO {audit} (what, subject, detail) VALUES ('discard', OLD.event_id, json_object('destination', OLD.destination));
END;
