-- name: session_settings
-- How a session of the store works. The configuration of a server can give other defaults for all of them: whatever could change the
-- meaning or the success of a statement is set here. Longer lists in IN would become a subquery, with another plan. The default of
-- lock_wait_timeout, for tables, is a day.
-- example: more=session_setting
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,ANSI_QUOTES,PIPES_AS_CONCAT',
    SESSION time_zone = '+00:00', SESSION collation_connection = utf8mb4_nopad_bin,
    SESSION in_predicate_conversion_threshold = 0, SESSION sql_select_limit = 18446744073709551615,
    SESSION sql_safe_updates = 0, SESSION sql_auto_is_null = 0,
    SESSION innodb_lock_wait_timeout = 5, SESSION lock_wait_timeout = 5, SESSION idle_transaction_timeout = 30,
    SESSION wait_timeout = 31536000{more}

-- name: session_setting
-- One more setting of a session: a part of session_settings.
-- example: setting=max_statement_time value=5
, SESSION {setting} = {value}

-- name: session_isolation
-- At the default level the lock of an empty lane would block producers. Not among the settings: the names of its variables depend on
-- the version.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE

-- name: snapshot_isolation
-- Let all reads of the next transaction see the same rows.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: begin_snapshot
-- Begin a transaction that only reads.
START TRANSACTION READ ONLY

-- name: schema_lock
-- Wait for at most a minute to become the one process that changes the schema. The server releases the lock with the session.
SELECT get_lock(:lock, 60)

-- name: schema_unlock
-- Release the lock, so that another process can change the schema.
SELECT release_lock(:lock)

-- name: schema_no_timeout
-- Let statements take any time: an index of a large table may take long.
SET SESSION max_statement_time = 0, SESSION lock_wait_timeout = 60

-- name: schema_create_migrations
-- Create the table of the migrations that were applied.
CREATE TABLE IF NOT EXISTS {schema} (
  version    INT NOT NULL PRIMARY KEY,
  name       VARCHAR(255) NOT NULL,
  applied_at DATETIME(6) NOT NULL DEFAULT (utc_timestamp(6))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin

-- name: schema_version
-- The newest migration that was applied, and the newest that was not additive. Additive ones have negative numbers.
SELECT coalesce(max(abs(version)), 0), coalesce(max(version), 0) FROM {schema}

-- name: schema_register
-- Enter a migration that was applied.
-- example: version=1 migration=0001_initial
INSERT IGNORE INTO {schema} (version, name) VALUES ({version}, '{migration}')

-- name: schema_unregister
-- Remove a migration that was undone.
-- example: version=2
DELETE FROM {schema} WHERE abs(version) = {version}

-- name: schema_refuse_pending
-- Fail if events are pending, before the tables are dropped. If an earlier attempt dropped them already, it does nothing.
BEGIN NOT ATOMIC
  DECLARE CONTINUE HANDLER FOR 1146 BEGIN END;
  IF EXISTS (SELECT 1 FROM {message}) THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'events are pending: deliver them first, or discard them with the tables';
  END IF;
END

-- name: schema_tables
-- List the tables and views of this outbox, with their engines.
SELECT table_name, engine FROM information_schema.tables
 WHERE table_schema = database() AND table_name LIKE concat(replace('{prefix}', '_', '|_'), '%') ESCAPE '|'

-- name: schema_lanes
-- Count the lanes.
SELECT count(*) FROM {lane}

-- name: drop_scratch_tables
-- Drop every table and view of an outbox.
-- example: kind=TABLE name=outbox_message
DROP {kind} IF EXISTS `{name}`
