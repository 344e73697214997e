-- The view under the names and states that other outboxes use: `outbox_events` (SENT, sent_at) and `event_outbox` (PROCESSED, metadata).

CREATE OR REPLACE VIEW {events_alias} AS
SELECT id, event_id, event_type, aggregate_type, aggregate_id, payload,
       CASE status WHEN 'PUBLISHED' THEN 'SENT' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       retry_count, next_retry_at, last_error, created_at, published_at AS sent_at
FROM {event};

CREATE OR REPLACE VIEW {outbox_alias} AS
SELECT id, event_id, event_type, aggregate_type, aggregate_id, payload, headers AS metadata,
       CASE status WHEN 'PUBLISHED' THEN 'PROCESSED' WHEN 'PROCESSING' THEN 'PENDING' ELSE status END AS status,
       created_at, published_at, retry_count, last_error, last_attempt_at AS last_retry_at
FROM {event};

-- Setting a given-up event back to PENDING by hand is a request like any other.
CREATE OR REPLACE FUNCTION {alias_update}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF OLD.status <> 'FAILED' OR NEW.status <> 'PENDING' THEN
    RAISE EXCEPTION 'event %: only FAILED → PENDING is possible here', OLD.event_id
      USING HINT = 'Everything else is the relay''s to write.';
  END IF;
  PERFORM {retry}(OLD.event_id);
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {events_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}();
CREATE OR REPLACE TRIGGER "{prefix}alias_update" INSTEAD OF UPDATE ON {outbox_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_update}();

-- Deleting published events by hand; what waits or was given up is not to be deleted behind the relay's back.
CREATE OR REPLACE FUNCTION {alias_delete}() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF OLD.published_at IS NULL THEN
    RAISE EXCEPTION 'event % is not published', OLD.event_id USING HINT = 'Discard it as an operator request instead.';
  END IF;
  DELETE FROM {history} WHERE event_id = OLD.event_id AND published_at = OLD.published_at;
  RETURN OLD;
END $$;
CREATE OR REPLACE TRIGGER "{prefix}alias_delete" INSTEAD OF DELETE ON {outbox_alias}
  FOR EACH ROW EXECUTE FUNCTION {alias_delete}();
