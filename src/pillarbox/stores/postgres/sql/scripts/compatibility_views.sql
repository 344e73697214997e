-- Views under the names, columns and states that other outboxes use, for their producers' INSERTs and their operators' statements:
-- `outbox_events` (PENDING, SENT), `event_outbox` (PENDING, PROCESSED) with `event_outbox_dlq` and `event_outbox_archive`,
-- `outbox_integration_event` (NEW, DONE) and `processed_event`, the ledger. Every trigger runs with the rights of the role that executes the statement.

-- Dead letters that an operator has deleted from `event_outbox` after moving them to `event_outbox_dlq`.
CREATE TABLE IF NOT EXISTS {outbox_moved} (
  dead_letter_id bigint PRIMARY KEY REFERENCES {dead_letter} ON DELETE CASCADE
);

CREATE OR REPLACE VIEW {events_alias} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, payload,
       CASE status WHEN 'PUBLISHED' THEN 'SENT' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       retry_count, next_retry_at, last_error, created_at, published_at AS sent_at, destination
FROM {event};

CREATE OR REPLACE VIEW {outbox_alias} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, payload, headers AS metadata,
       CASE status WHEN 'PUBLISHED' THEN 'PROCESSED' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       created_at, published_at, retry_count, last_error, last_attempt_at AS last_retry_at, destination,
       content_type, payload_bytes
FROM {event} e
WHERE status <> 'FAILED' OR NOT EXISTS (
  SELECT FROM {outbox_moved} JOIN {dead_letter} d USING (dead_letter_id)
  WHERE d.event_id = e.event_id AND d.destination = e.destination AND d.id = e.id);

CREATE OR REPLACE VIEW {outbox_dlq} AS
SELECT event_id AS id, event_id, event_type, aggregate_type, aggregate_id, {json}(payload, content_type) AS payload,
       headers AS metadata, 'FAILED' AS status, recorded_at AS created_at, NULL::timestamptz AS published_at,
       CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END AS retry_count, error AS last_error,
       last_attempt_at AS last_retry_at, destination, content_type, payload AS payload_bytes
FROM {dead_letter};

CREATE TABLE IF NOT EXISTS {outbox_archive} AS SELECT * FROM {outbox_alias} WITH NO DATA;

-- FAILED here means that a send failed and the relay retries it at next_retry_at; without that time it is a dead letter or blocked.
CREATE OR REPLACE VIEW {integration_event} AS
SELECT event_id AS id, event_type, payload AS payload_json,
       CASE WHEN status = 'PUBLISHED' THEN 'DONE' WHEN status = 'PENDING' AND retry_count = 0 THEN 'NEW'
            WHEN status = 'PENDING' THEN 'FAILED' ELSE status END AS status,
       retry_count AS attempts,
       CASE WHEN status = 'PENDING' AND retry_count > 0 THEN coalesce(next_retry_at, now()) ELSE next_retry_at END
         AS next_retry_at,
       locked_by, locked_at, occurred_at, correlation_id, trace_id, last_error, created_at,
       published_at AS processed_at, destination
FROM {event};

-- The ledger.
CREATE OR REPLACE VIEW {processed_event} AS
SELECT id, event_id, destination, status, created_at, updated_at, processed_at, send_number FROM {ledger};

-- A producer inserts new events only: everything about their delivery is the relay's to write.
CREATE OR REPLACE FUNCTION {alias_new}(event_id text, status text, first_status text, untouched boolean) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF status <> first_status OR NOT untouched THEN
    RAISE EXCEPTION 'event %: only a new event with status % can be inserted', coalesce(event_id, '(without an id)'), first_status
      USING ERRCODE = 'check_violation',
        DETAIL = format('The row has status %s%s.', coalesce(status, 'NULL'),
          CASE WHEN untouched THEN '' ELSE ' and says that the event was attempted, locked or published' END),
        HINT = 'Leave out the columns about delivery (or insert 0 and NULL): the relay writes them.';
  END IF;
  RETURN coalesce(event_id, {uuid7}());
END $$;

CREATE OR REPLACE FUNCTION {events_insert}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.event_id := {alias_new}(coalesce(NEW.event_id, NEW.id), coalesce(NEW.status, 'PENDING'), 'PENDING',
    coalesce(NEW.retry_count, 0) = 0 AND NEW.last_error IS NULL AND NEW.sent_at IS NULL);
  NEW.id := NEW.event_id;
  NEW.status := 'PENDING';
  NEW.retry_count := 0;
  NEW.created_at := coalesce(NEW.created_at, now());
  NEW.destination := coalesce(NEW.destination, '');
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, payload, occurred_at, recorded_at,
    available_at)
  VALUES (NEW.event_id, NEW.destination, NEW.event_type, NEW.aggregate_type, NEW.aggregate_id,
    convert_to(NEW.payload::text, 'UTF8'), NEW.created_at, NEW.created_at, NEW.next_retry_at);
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION {outbox_insert}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.event_id := {alias_new}(coalesce(NEW.event_id, NEW.id), coalesce(NEW.status, 'PENDING'), 'PENDING',
    coalesce(NEW.retry_count, 0) = 0 AND NEW.last_error IS NULL AND NEW.last_retry_at IS NULL AND NEW.published_at IS NULL);
  NEW.id := NEW.event_id;
  NEW.status := 'PENDING';
  NEW.retry_count := 0;
  NEW.created_at := coalesce(NEW.created_at, now());
  NEW.destination := coalesce(NEW.destination, '');
  NEW.content_type := coalesce(NEW.content_type, 'application/json');
  NEW.payload_bytes := coalesce(convert_to(NEW.payload::text, 'UTF8'), NEW.payload_bytes);
  IF jsonb_typeof(NEW.metadata) <> 'object' THEN
    RAISE EXCEPTION 'event %: metadata is a JSON %, not an object', NEW.event_id, jsonb_typeof(NEW.metadata)
      USING ERRCODE = 'check_violation', HINT = 'Insert an object of names and values: they become headers.';
  END IF;
  NEW.metadata := coalesce(NEW.metadata, '{}');
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, payload, content_type, headers,
    correlation_id, trace_id, occurred_at, recorded_at)
  VALUES (NEW.event_id, NEW.destination, NEW.event_type, NEW.aggregate_type, NEW.aggregate_id, NEW.payload_bytes,
    NEW.content_type, NEW.metadata, NEW.metadata ->> 'correlation_id', NEW.metadata ->> 'trace_id', NEW.created_at,
    NEW.created_at);
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION {integration_insert}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.id := {alias_new}(NEW.id, coalesce(NEW.status, 'NEW'), 'NEW',
    coalesce(NEW.attempts, 0) = 0 AND NEW.last_error IS NULL AND NEW.locked_by IS NULL AND NEW.locked_at IS NULL
    AND NEW.processed_at IS NULL);
  NEW.status := 'NEW';
  NEW.attempts := 0;
  NEW.created_at := coalesce(NEW.created_at, now());
  NEW.occurred_at := coalesce(NEW.occurred_at, NEW.created_at);
  NEW.destination := coalesce(NEW.destination, '');
  INSERT INTO {message} (event_id, destination, event_type, payload, correlation_id, trace_id, occurred_at, recorded_at,
    available_at)
  VALUES (NEW.id, NEW.destination, NEW.event_type, convert_to(NEW.payload_json::text, 'UTF8'), NEW.correlation_id,
    NEW.trace_id, NEW.occurred_at, NEW.created_at, NEW.next_retry_at);
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "{prefix}alias_insert" INSTEAD OF INSERT ON {events_alias}
  FOR EACH ROW EXECUTE FUNCTION {events_insert}();
CREATE OR REPLACE TRIGGER "{prefix}alias_insert" INSTEAD OF INSERT ON {outbox_alias}
  FOR EACH ROW EXECUTE FUNCTION {outbox_insert}();
CREATE OR REPLACE TRIGGER "{prefix}alias_insert" INSTEAD OF INSERT ON {integration_event}
  FOR EACH ROW EXECUTE FUNCTION {integration_insert}();

-- Moving an event to the dead letters by hand: the relay has done it already, or is asked to.
CREATE OR REPLACE FUNCTION {dlq_insert}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM {dead_letter} WHERE event_id = NEW.event_id AND destination = NEW.destination) THEN
    RETURN NEW;
  END IF;
  INSERT INTO {request} (action, event_id, destination)
  SELECT 'dead_letter', event_id, destination FROM {message} m
  WHERE event_id = NEW.event_id AND destination = NEW.destination AND NOT EXISTS (
    SELECT FROM {request} r
    WHERE r.event_id = m.event_id AND r.destination = m.destination AND r.action = 'dead_letter' AND r.done_at IS NULL);
  IF NOT EXISTS (SELECT FROM {message} WHERE event_id = NEW.event_id AND destination = NEW.destination) THEN
    RAISE EXCEPTION 'event % is neither pending nor a dead letter', NEW.event_id
      USING ERRCODE = 'check_violation', HINT = 'Insert rows of event_outbox here: SELECT * FROM event_outbox WHERE …';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_insert" INSTEAD OF INSERT ON {outbox_dlq}
  FOR EACH ROW EXECUTE FUNCTION {dlq_insert}();

-- Setting a failed event back to its first status is an operator request like any other.
CREATE OR REPLACE FUNCTION {alias_update}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.status <> 'FAILED' OR NEW.status <> TG_ARGV[0] THEN
    RAISE EXCEPTION 'event %: only FAILED → % is possible here', OLD.id, TG_ARGV[0]
      USING ERRCODE = 'check_violation', HINT = 'Everything else is the relay''s to write.';
  END IF;
  PERFORM {retry}(OLD.id);
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {events_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}('PENDING');
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {outbox_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}('PENDING');
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {outbox_dlq}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}('PENDING');
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {integration_event}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}('NEW');

-- Deleting by hand: published events leave the history, dead letters leave `event_outbox` for `event_outbox_dlq`.
CREATE OR REPLACE FUNCTION {alias_delete}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- An event that was replayed is in the history more than once.
  DELETE FROM {history} WHERE event_id = OLD.id AND destination = OLD.destination
    AND published_at = (to_jsonb(OLD) ->> TG_ARGV[0])::timestamptz;
  IF FOUND THEN RETURN OLD; END IF;
  IF TG_TABLE_NAME = '{stem}event_outbox' THEN
    INSERT INTO {outbox_moved} SELECT dead_letter_id FROM {dead_letter}
    WHERE OLD.status = 'FAILED' AND event_id = OLD.id AND destination = OLD.destination
    ON CONFLICT DO NOTHING;
    IF FOUND OR EXISTS (SELECT FROM {request} WHERE event_id = OLD.id AND destination = OLD.destination
                        AND action = 'dead_letter' AND done_at IS NULL) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'event % is not published', OLD.id
    USING ERRCODE = 'check_violation', HINT = 'Discard it with `pillarbox events discard` or `pillarbox dead discard`.';
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {events_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_delete}('sent_at');
CREATE OR REPLACE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {outbox_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_delete}('published_at');
CREATE OR REPLACE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {integration_event}
  FOR EACH ROW EXECUTE FUNCTION {alias_delete}('processed_at');

-- Deleting from the dead letters discards them.
CREATE OR REPLACE FUNCTION {dlq_delete}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM {dead_letter} WHERE event_id = OLD.event_id AND destination = OLD.destination;
  INSERT INTO {audit} (what, subject, detail)
  SELECT 'discard', OLD.event_id, jsonb_build_object('destination', OLD.destination) WHERE FOUND;
  RETURN OLD;
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {outbox_dlq}
  FOR EACH ROW EXECUTE FUNCTION {dlq_delete}();
