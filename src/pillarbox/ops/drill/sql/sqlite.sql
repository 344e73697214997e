-- name: create_transactions
-- Create the table in which each transaction of a writer leaves its number: it decides about a commit whose reply was lost.
CREATE TABLE {transactions} (number TEXT PRIMARY KEY)

-- name: create_effects
-- Create the table of effects: one row per effect, and nothing that would prevent a second one.
CREATE TABLE {effects} (event_id TEXT NOT NULL)

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

-- name: server_version
-- Read the version of the library.
SELECT sqlite_version()
