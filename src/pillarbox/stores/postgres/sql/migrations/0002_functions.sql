-- Functions: JSON that never fails, sending a dead letter again, and days of history made ahead and dropped.

CREATE FUNCTION {json}(payload bytea, content_type text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
BEGIN
  -- One malformed payload must not fail a query over all the others.
  IF content_type NOT LIKE '%json%' THEN RETURN NULL; END IF;
  RETURN convert_from(payload, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;

CREATE FUNCTION {retry}(wanted text) RETURNS integer
LANGUAGE sql VOLATILE SET search_path = pg_catalog AS $$
  -- Dead letters of this event go to the end of their key; what waits or blocks is asked of its lane's owner.
  WITH letters AS (
    SELECT DISTINCT ON (destination) * FROM {dead_letter} WHERE event_id = wanted ORDER BY destination, dead_letter_id
  ), back AS (
    INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
      content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at)
    SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
      headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at
    FROM letters ORDER BY dead_letter_id
    ON CONFLICT DO NOTHING RETURNING destination
  ), gone AS (
    DELETE FROM {dead_letter} d USING letters l JOIN back b USING (destination) WHERE d.dead_letter_id = l.dead_letter_id
  ), asked AS (
    INSERT INTO {request} (action, event_id, destination)
    SELECT 'retry', m.event_id, m.destination FROM {message} m
    WHERE m.event_id = wanted AND (m.held = 'blocked' OR m.available_at IS NOT NULL)
    RETURNING 1
  ), noted AS (
    INSERT INTO {audit} (what, subject, count)
    SELECT 'retry', wanted, (SELECT count(*) FROM back) + (SELECT count(*) FROM asked)
  )
  SELECT ((SELECT count(*) FROM back) + (SELECT count(*) FROM asked))::integer
$$;

-- The relay's role may not own the tables, so days of history are made and dropped in the owner's name.
CREATE FUNCTION {history_create}(ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET lock_timeout = '100ms' AS $$
DECLARE
  day date; part text; made integer := 0;
BEGIN
  FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date + n FROM generate_series(0, least(ahead, 31)) n LOOP
    part := '{prefix}history_' || to_char(day, 'YYYYMMDD');
    CONTINUE WHEN to_regclass(format('{schema_name}.%I', part)) IS NOT NULL;
    BEGIN
      EXECUTE format('CREATE TABLE {schema_name}.%I (LIKE {history} INCLUDING ALL)', part);
      EXECUTE format('ALTER TABLE {history} ATTACH PARTITION {schema_name}.%I FOR VALUES FROM (%L) TO (%L)',
                     part, day::text || ' 00:00:00+00', (day + 1)::text || ' 00:00:00+00');
      made := made + 1;
    EXCEPTION
      -- The default partition already holds rows of that day: they stay there, and so does the day.
      WHEN check_violation THEN NULL;
      -- A reader holds the table: the next call tries again.
      WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  RETURN made;
END $$;

CREATE FUNCTION {history_drop}(older interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET lock_timeout = '100ms' AS $$
DECLARE
  part record; dropped integer := 0;
BEGIN
  FOR part IN
    SELECT c.relname, to_date(right(c.relname, 8), 'YYYYMMDD') AS day
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = '{history}'::regclass AND c.relname ~ '_[0-9]{8}$' ORDER BY 2
  LOOP
    EXIT WHEN ((part.day + 1)::timestamp AT TIME ZONE 'UTC') > now() - older;
    BEGIN
      EXECUTE format('DROP TABLE {schema_name}.%I', part.relname);
      dropped := dropped + 1;
    EXCEPTION WHEN lock_not_available THEN
      -- A reader holds it: it goes the next time.
      NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;

REVOKE EXECUTE ON FUNCTION {history_create}(integer), {history_drop}(interval) FROM PUBLIC;
SELECT {history_create}(7);
