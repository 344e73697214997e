-- name: schema_lock
-- Try to become the one process that changes the schema. Not a blocking lock: see `pillarbox.stores.postgres.schema`.
SELECT pg_try_advisory_lock(hashtextextended('pillarbox schema {schema}', 0))

-- name: schema_unlock
-- Release the lock, so that another process can change the schema.
SELECT pg_advisory_unlock(hashtextextended('pillarbox schema {schema}', 0))

-- name: schema_create_if_missing
-- Create the schema of the tables. Not IF NOT EXISTS, which needs the right to create even where it exists.
DO $$ BEGIN
  IF pg_catalog.to_regnamespace('{schema_name}') IS NULL THEN CREATE SCHEMA {schema_name}; END IF;
END $$

-- name: schema_no_timeout
-- Let statements take any time: an index of a large table may take long.
SET statement_timeout = 0

-- name: schema_reset_timeout
-- Limit the time of statements as before.
RESET statement_timeout

-- name: schema_has_migrations
-- Was any migration ever applied?
SELECT to_regclass('{schema}') IS NOT NULL

-- name: schema_version
-- The newest migration that was applied, and the newest that was not additive. Additive ones have negative numbers.
SELECT coalesce(max(abs(version)), 0) AS version, coalesce(max(version), 0) AS breaking FROM {schema}

-- name: schema_register
-- Enter a migration that was applied.
-- example: version=1 migration=0001_initial
INSERT INTO {schema} (version, name) VALUES ({version}, '{migration}')

-- name: schema_unregister
-- Remove a migration that was undone.
-- example: version=2
DELETE FROM {schema} WHERE abs(version) = {version}

-- name: schema_refuse_pending
-- Fail if events are pending, before the tables are dropped.
DO $$ BEGIN
  IF EXISTS (SELECT FROM {message}) THEN
    RAISE EXCEPTION 'events are pending in {message}: deliver them first, or discard them with the tables';
  END IF;
END $$

-- name: schema_hash
-- Does the database hash lanes as it did when the tables were created?
SELECT coalesce(bool_and(lane_hash = hashtext('pillarbox')), true) FROM {schema}

-- name: schema_lanes
-- Count the lanes.
SELECT count(*) FROM {lane}

-- name: schema_limit
-- Limit the size of new payloads. A trigger, because a CHECK would also reject the settlement of rows that are there already.
-- example: max_payload=1048576
CREATE OR REPLACE FUNCTION {payload_limit}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- The relay and operators move what the table accepted before under a higher limit; a producer cannot claim to be one.
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

-- name: scratch_tables
-- List the tables and views whose names begin with the prefix, without the ending `outbox_`.
SELECT c.relname::pg_catalog.text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.oid = pg_catalog.to_regnamespace('{schema_name}') AND pg_catalog.starts_with(c.relname, '{stem}')
  AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition

-- name: scratch_schema_exists
-- Whether the schema of the tables exists.
SELECT pg_catalog.to_regnamespace('{schema_name}') IS NOT NULL

-- name: drop_scratch_schema
-- Drop the schema, unless another session has created something in it or has dropped it.
DO $$
BEGIN
  DROP SCHEMA IF EXISTS {schema_name};
EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
END
$$

-- name: drop_scratch_tables
-- Drop every table, view and routine whose name begins with the prefix, without the ending `outbox_`.
DO $$
DECLARE
  thing pg_catalog.text;
BEGIN
  FOR thing IN
    SELECT pg_catalog.format('%s IF EXISTS %I.%I', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, n.nspname, c.relname)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.oid = pg_catalog.to_regnamespace('{schema_name}') AND pg_catalog.starts_with(c.relname, '{stem}')
      AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
    UNION ALL
    SELECT pg_catalog.format('ROUTINE IF EXISTS %s', p.oid::pg_catalog.regprocedure)
    FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = pg_catalog.to_regnamespace('{schema_name}') AND pg_catalog.starts_with(p.proname, '{stem}')
  LOOP
    EXECUTE 'DROP ' || thing || ' CASCADE';
  END LOOP;
END
$$
