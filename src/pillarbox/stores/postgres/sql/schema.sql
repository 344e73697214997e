-- name: schema_lock
-- Try to become the one process that changes the schema. Not a blocking lock: see `pillarbox.stores.postgres.schema`.
SELECT pg_try_advisory_lock(hashtextextended('pillarbox schema {schema}', 0))

-- name: schema_unlock
-- Let the next process change the schema.
SELECT pg_advisory_unlock(hashtextextended('pillarbox schema {schema}', 0))

-- name: schema_exists
-- Does the schema of the tables exist?
SELECT to_regnamespace('{schema_name}') IS NOT NULL

-- name: schema_create
-- Create the schema of the tables. Not IF NOT EXISTS, which needs the right to create even where it exists.
CREATE SCHEMA {schema_name}

-- name: schema_has_migrations
-- Was any migration ever applied?
SELECT to_regclass('{schema}') IS NOT NULL

-- name: schema_version
-- The newest migration that was applied.
SELECT coalesce(max(version), 0) FROM {schema}

-- name: schema_register
-- Enter a migration that was applied.
INSERT INTO {schema} (version, name) VALUES ({version}, '{migration}')

-- name: schema_hash
-- Does the database hash lanes as it did when the tables were created?
SELECT coalesce(bool_and(lane_hash = hashtext('pillarbox')), true) FROM {schema}

-- name: schema_lanes
-- Count the lanes.
SELECT count(*) FROM {lane}

-- name: schema_limit
-- Limit the size of new payloads. A trigger, because a CHECK would also reject the settlement of rows that are there already.
CREATE OR REPLACE FUNCTION {payload_limit}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The relay and operators move what the table accepted before under a higher limit; a producer may not claim to be one.
  IF current_setting('pillarbox.internal', true) = 'on' AND has_table_privilege(TG_RELID, 'DELETE') THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = '{prefix}message_payload_ck',
    MESSAGE = format('the payload has %s bytes, max_payload allows {max_payload}', octet_length(NEW.payload));
END $$;
CREATE OR REPLACE TRIGGER "{prefix}message_payload_limit" BEFORE INSERT ON {message} FOR EACH ROW
  WHEN (octet_length(NEW.payload) > {max_payload}) EXECUTE FUNCTION {payload_limit}()

-- name: schema_limit_now
-- Read the payload limit of the table.
SELECT substring(pg_get_triggerdef(oid) FROM '> (\d+)')::bigint FROM pg_trigger
WHERE tgname = '{prefix}message_payload_limit' AND tgrelid = to_regclass('{message}')
