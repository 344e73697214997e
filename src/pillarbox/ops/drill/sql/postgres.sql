-- name: create_transactions
-- Create the table in which each transaction of a writer leaves its number: it decides about a commit whose reply was lost.
CREATE TABLE {transactions} (number text PRIMARY KEY)

-- name: create_effects
-- Create the table of effects: one row per effect, and nothing that would prevent a second one.
CREATE TABLE {effects} (event_id text NOT NULL)

-- name: write_transaction
-- Leave the number of a transaction.
INSERT INTO {transactions} (number) VALUES ($1)

-- name: write_effect
-- Apply the effect of an event.
INSERT INTO {effects} (event_id) VALUES ($1)

-- name: savepoint
-- Begin a part of a transaction that is rolled back.
SAVEPOINT drill

-- name: roll_back_part
-- Roll back to the savepoint.
ROLLBACK TO SAVEPOINT drill

-- name: read_transactions
-- Read the numbers of all transactions that were committed.
SELECT number FROM {transactions}

-- name: count_effects
-- Count how often the effect of each event was applied.
SELECT event_id, count(*) FROM {effects} GROUP BY event_id

-- name: count_effect_rows
-- Count the effects roughly: one that was applied twice counts twice.
SELECT count(*) FROM {effects}

-- name: count_all_effects
-- Count the events whose effect was applied.
SELECT count(DISTINCT event_id) FROM {effects}

-- name: lock_messages
-- Lock the pending messages in the lanes of one relay, so that its settlement waits.
SELECT count(*) FROM (
  SELECT 1 FROM {message} m WHERE m.lane IN (SELECT l.lane FROM {lane} l JOIN {relay} r ON r.id = l.owner WHERE r.name = $1)
  FOR UPDATE OF m
) AS locked

-- name: blocked_sessions
-- Read the sessions that wait for a lock of this one.
SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))

-- name: is_working
-- Count whether a session executes a statement.
SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'

-- name: server_version
-- Read the version of the server.
SELECT current_setting('server_version')
