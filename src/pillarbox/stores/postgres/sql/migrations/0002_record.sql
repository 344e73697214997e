-- Functions with which any program records events in SQL. (additive)

-- ---------------------------------------------------------------------------------------------------------------------
-- Record an event like `Outbox.record`: insert it, and notify an idle relay at commit. Returns the event id. NULL stands for
-- the default of a parameter. It runs with the privileges of the caller, who needs INSERT on the table only.

-- The payload as text is stored unchanged. PostgreSQL prefers this function where the type of the payload is unknown, as for
-- the parameters of most drivers. It replaces an INSERT of text into the column, where PostgreSQL reads `\\` as `\`.
CREATE FUNCTION {record}(
  event_type     text,
  payload        text,
  -- Events of one key are sent in order. Default: aggregate_type:aggregate_id, else the aggregate_id.
  key            text        DEFAULT NULL,
  aggregate_type text        DEFAULT NULL,
  aggregate_id   text        DEFAULT NULL,
  headers        jsonb       DEFAULT NULL,
  -- Fails while an event with this id is pending. Default: a UUIDv7.
  event_id       text        DEFAULT NULL,
  -- The relay does not send the event before this time.
  available_at   timestamptz DEFAULT NULL,
  -- A destination that overrides all routes.
  destination    text        DEFAULT NULL,
  content_type   text        DEFAULT NULL,
  schema_version integer     DEFAULT NULL,
  correlation_id text        DEFAULT NULL,
  causation_id   text        DEFAULT NULL,
  trace_id       text        DEFAULT NULL,
  occurred_at    timestamptz DEFAULT NULL,
  -- Whether to notify an idle relay. A transaction that is prepared for two-phase commit cannot notify.
  notify         boolean     DEFAULT true
) RETURNS text LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  recorded_id CONSTANT text := coalesce(event_id, {uuid7}());
  kind        CONSTANT text := coalesce(content_type, 'application/json');
BEGIN
  -- The same rule as `is_json` in pillarbox/core/text.py. The cast fails for what is not JSON.
  IF kind ~* '^\s*((application|text)/json|[^;]*\+json)\s*(;|$)' AND json_typeof(payload::json) NOT IN ('object', 'array') THEN
    RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
      MESSAGE = format('the payload is a JSON %s: only an object or an array can be recorded', json_typeof(payload::json)),
      HINT = 'If it was encoded as JSON twice, encode it once.';
  END IF;
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
    content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at)
  VALUES (recorded_id, coalesce(destination, ''), event_type, aggregate_type, aggregate_id, key, convert_to(payload, 'UTF8'),
    kind, coalesce(headers, '{}'), coalesce(schema_version, 1), correlation_id, causation_id, trace_id,
    coalesce(occurred_at, now()), available_at);
  -- An idle relay shares the lock that is tried here and released at once.
  IF notify THEN
    PERFORM CASE WHEN pg_try_advisory_lock(hashtextextended('{channel}', 0))
      THEN pg_advisory_unlock(hashtextextended('{channel}', 0)) ELSE pg_notify('{channel}', '') IS NOT NULL END;
  END IF;
  RETURN recorded_id;
END $$;

-- The same for a payload of type jsonb.
CREATE FUNCTION {record}(
  event_type     text,
  payload        jsonb,
  key            text        DEFAULT NULL,
  aggregate_type text        DEFAULT NULL,
  aggregate_id   text        DEFAULT NULL,
  headers        jsonb       DEFAULT NULL,
  event_id       text        DEFAULT NULL,
  available_at   timestamptz DEFAULT NULL,
  destination    text        DEFAULT NULL,
  content_type   text        DEFAULT NULL,
  schema_version integer     DEFAULT NULL,
  correlation_id text        DEFAULT NULL,
  causation_id   text        DEFAULT NULL,
  trace_id       text        DEFAULT NULL,
  occurred_at    timestamptz DEFAULT NULL,
  notify         boolean     DEFAULT true
) RETURNS text LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT {record}(event_type, payload::text, key, aggregate_type, aggregate_id, headers, event_id, available_at, destination,
    content_type, schema_version, correlation_id, causation_id, trace_id, occurred_at, notify)
$$;
