-- Bounds for what a plain INSERT can give, functions that temporary objects of their caller cannot divert, and JSON that no
-- parallel plan computes.

-- Not valid: rows that are there already stay, and the relay dead-letters those it cannot decode. Python's calendar ends with
-- the years 1 and 9999; a relay adds to the counters, and their sum must remain an integer; the largest id means "no message".
ALTER TABLE {message}
  -- A trigger limits payloads now, on INSERT only: see schema_limit.sql.
  DROP CONSTRAINT IF EXISTS "{prefix}message_payload_ck",
  DROP CONSTRAINT IF EXISTS "{prefix}message_times_ck",
  DROP CONSTRAINT IF EXISTS "{prefix}message_counters_ck",
  DROP CONSTRAINT IF EXISTS "{prefix}message_id_ck",
  DROP CONSTRAINT IF EXISTS "{prefix}message_waiting_ck",
  ADD CONSTRAINT "{prefix}message_times_ck" CHECK (
    occurred_at > '0001-01-01 00:00:00+00' AND occurred_at < '9999-12-31 23:59:59.999999+00'
    AND recorded_at > '0001-01-01 00:00:00+00' AND recorded_at < '9999-12-31 23:59:59.999999+00'
    AND available_at > '0001-01-01 00:00:00+00' AND available_at < '9999-12-31 23:59:59.999999+00'
    AND first_failed_at > '0001-01-01 00:00:00+00' AND first_failed_at < '9999-12-31 23:59:59.999999+00'
    AND last_attempt_at > '0001-01-01 00:00:00+00' AND last_attempt_at < '9999-12-31 23:59:59.999999+00') NOT VALID,
  ADD CONSTRAINT "{prefix}message_counters_ck" CHECK (
    attempts BETWEEN 0 AND 1000000000 AND deferrals BETWEEN 0 AND 1000000000) NOT VALID,
  ADD CONSTRAINT "{prefix}message_id_ck" CHECK (id BETWEEN 1 AND 9223372036854775806) NOT VALID,
  -- No fetch finds a message that waits behind others of no key.
  ADD CONSTRAINT "{prefix}message_waiting_ck" CHECK (held IS DISTINCT FROM 'waiting' OR key IS NOT NULL) NOT VALID;
UPDATE {message} SET attempts = least(greatest(attempts, 0), 1000000000), deferrals = least(greatest(deferrals, 0), 1000000000)
WHERE attempts NOT BETWEEN 0 AND 1000000000 OR deferrals NOT BETWEEN 0 AND 1000000000;
UPDATE {message} SET held = NULL WHERE held = 'waiting' AND key IS NULL;

-- The nearest time that Python can decode and the table accepts; without SET, so that statements have it inlined.
CREATE OR REPLACE FUNCTION {clamp_time}(moment timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN moment <= '0001-01-01 00:00:00+00'::pg_catalog.timestamptz THEN '0001-01-01 00:00:00.000001+00'
              WHEN moment >= '9999-12-31 23:59:59.999999+00'::pg_catalog.timestamptz THEN '9999-12-31 23:59:59.999998+00'
              ELSE moment END
$$;

-- An EXCEPTION block needs a subtransaction, which a parallel worker cannot begin.
CREATE OR REPLACE FUNCTION {json}(payload bytea, content_type text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- One malformed payload must not fail a query over all the others.
  IF content_type NOT LIKE '%json%' THEN RETURN NULL; END IF;
  RETURN convert_from(payload, 'UTF8')::pg_catalog.jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN NULL;
END $$;

ALTER FUNCTION {uuid7}() SET search_path = pg_catalog, pg_temp;

-- SECURITY DEFINER: PostgreSQL searches a pg_temp that search_path does not name before pg_catalog, so that a temporary type or
-- table of the caller would run code as the owner. pg_temp comes last, and types and catalogs are qualified all the same.
CREATE OR REPLACE FUNCTION {history_create}(ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  today CONSTANT pg_catalog.date := (pg_catalog.now() AT TIME ZONE 'UTC')::pg_catalog.date;
  day pg_catalog.date; part pg_catalog.text; made pg_catalog.int4 := 0;
BEGIN
  FOR n IN 0 .. least(ahead, 31) LOOP
    day := today OPERATOR(pg_catalog.+) n;
    part := '{prefix}history_' || pg_catalog.to_char(day, 'YYYYMMDD');
    CONTINUE WHEN pg_catalog.to_regclass(pg_catalog.format('{schema_name}.%I', part)) IS NOT NULL;
    BEGIN
      EXECUTE pg_catalog.format('CREATE TABLE {schema_name}.%I (LIKE {history} INCLUDING ALL)', part);
      EXECUTE pg_catalog.format('ALTER TABLE {history} ATTACH PARTITION {schema_name}.%I FOR VALUES FROM (%L) TO (%L)', part,
        pg_catalog.to_char(day, 'YYYY-MM-DD 00:00:00+00'),
        pg_catalog.to_char(day OPERATOR(pg_catalog.+) 1, 'YYYY-MM-DD 00:00:00+00'));
      made := made OPERATOR(pg_catalog.+) 1;
    EXCEPTION
      -- The default partition already holds rows of that day: they stay there, and so does the day.
      WHEN check_violation THEN NULL;
      -- A reader holds the table: the next call tries again.
      WHEN lock_not_available THEN NULL;
    END;
  END LOOP;
  RETURN made;
END $$;

CREATE OR REPLACE FUNCTION {history_drop}(older interval) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  -- Neither a missing nor a negative age reaches into today.
  newest CONSTANT pg_catalog.timestamptz :=
    pg_catalog.now() OPERATOR(pg_catalog.-) greatest(older, '0 seconds'::pg_catalog.interval);
  part pg_catalog.regclass; day pg_catalog.date; dropped pg_catalog.int4 := 0;
BEGIN
  FOR part, day IN
    SELECT c.oid::pg_catalog.regclass, pg_catalog.to_date(pg_catalog.right(c.relname, 8), 'YYYYMMDD')
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid
    WHERE i.inhparent OPERATOR(pg_catalog.=) '{history}'::pg_catalog.regclass
      AND c.relname OPERATOR(pg_catalog.~) '_[0-9]{8}$' ORDER BY 2
  LOOP
    EXIT WHEN ((day OPERATOR(pg_catalog.+) 1)::pg_catalog.timestamp AT TIME ZONE 'UTC') OPERATOR(pg_catalog.>) newest;
    BEGIN
      EXECUTE pg_catalog.format('DROP TABLE %s', part);
      dropped := dropped OPERATOR(pg_catalog.+) 1;
    EXCEPTION WHEN lock_not_available THEN
      -- A reader holds it: it goes the next time.
      NULL;
    END;
  END LOOP;
  RETURN dropped;
END $$;

REVOKE EXECUTE ON FUNCTION {history_create}(integer), {history_drop}(interval) FROM PUBLIC;
