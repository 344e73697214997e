-- The view under the names and states that other outboxes use: `outbox_events` (SENT, sent_at) and `event_outbox` (PROCESSED, metadata).

DROP VIEW IF EXISTS {events_alias};
CREATE VIEW {events_alias} AS
SELECT id, event_id, event_type, aggregate_type, aggregate_id, destination, payload,
       CASE status WHEN 'PUBLISHED' THEN 'SENT' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       retry_count, next_retry_at, last_error, created_at, published_at AS sent_at
  FROM {event};

DROP VIEW IF EXISTS {outbox_alias};
CREATE VIEW {outbox_alias} AS
SELECT id, event_id, event_type, aggregate_type, aggregate_id, destination, payload, headers AS metadata,
       CASE status WHEN 'PUBLISHED' THEN 'PROCESSED' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       created_at, published_at, retry_count, last_error, last_attempt_at AS last_retry_at
  FROM {event};

-- Setting a given-up event back to PENDING by hand: a dead letter goes to the end of its key, a blocked one is requested.
CREATE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {events_alias}
BEGIN
  SELECT RAISE(ABORT, 'only FAILED to PENDING is possible here: everything else is the relay''s to write')
   WHERE OLD.status <> 'FAILED' OR NEW.status <> 'PENDING';
  INSERT OR IGNORE INTO {message} (
    place, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at)
  SELECT -dead_id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
         headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at
    FROM {dead}
   WHERE id = OLD.id AND event_id = OLD.event_id AND destination = OLD.destination
   ORDER BY dead_id;
  DELETE FROM {dead} WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
  UPDATE {message} SET place = NULL WHERE place < 0;
  INSERT INTO {request} (action, event_id, destination)
  SELECT 'retry', event_id, destination
    FROM {message}
   WHERE event_id = OLD.event_id AND destination = OLD.destination AND held = 'blocked';
  INSERT INTO {audit} (what, subject, detail) VALUES ('retry', OLD.event_id, json_object('destination', OLD.destination));
END;

-- Deleting published events by hand; what waits or was given up is not to be deleted behind the relay's back.
CREATE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {outbox_alias}
BEGIN
  SELECT RAISE(ABORT, 'this event is not published: discard it as an operator''s request instead')
   WHERE OLD.published_at IS NULL;
  DELETE FROM {history}
   WHERE event_id = OLD.event_id AND destination = OLD.destination AND published_at = OLD.published_at;
END;
