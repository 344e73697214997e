-- Messages that are settled go into a temporary table of the session, and every statement works from there: their number is
-- constant. A batch of deliveries goes without it, as one JSON text. The lanes are locked first, see lock_lanes.

-- name: create_settlement
-- Create the table of what is settled, at the beginning of each session that writes. It has no transactions: it is emptied before
-- each use.
CREATE TEMPORARY TABLE settlement (
  id BIGINT NOT NULL, destination VARCHAR(255) {bytewise} NOT NULL, resolved VARCHAR(255) {bytewise} NOT NULL,
  outcome VARCHAR(9) NOT NULL, counted INT NOT NULL, counted_before_send INT NOT NULL, delay BIGINT, error TEXT {bytewise},
  attempts INT, deferrals INT, seconds DOUBLE, KEY position_idx (id)) ENGINE = Aria TRANSACTIONAL = 0

-- name: clear_settlement
-- Empty the table of what is settled.
DELETE FROM settlement

-- name: fill_settlement
-- Enter what is settled.
INSERT INTO settlement (id, destination, resolved, outcome, counted, counted_before_send, delay, error, attempts, deferrals, seconds)
SELECT a.id, a.destination, a.resolved, a.outcome, a.counted, a.counted_before_send, a.delay, a.error, a.attempts, a.deferrals, a.seconds
  FROM JSON_TABLE(:messages, '$[*]' COLUMNS (id BIGINT PATH '$[0]', destination VARCHAR(255) {bytewise} PATH '$[1]',
         resolved VARCHAR(255) {bytewise} PATH '$[2]', outcome VARCHAR(9) {bytewise} PATH '$[3]', counted INT PATH '$[4]',
         counted_before_send INT PATH '$[5]', delay BIGINT PATH '$[6]', error TEXT {bytewise} PATH '$[7]',
         attempts INT PATH '$[8]', deferrals INT PATH '$[9]', seconds DOUBLE PATH '$[10]')) AS a

-- name: clean_settlement
-- Leave out what is not pending any more, and what was counted before, so that only the answer was lost.
DELETE a FROM settlement AS a LEFT JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE m.id IS NULL OR (a.attempts IS NOT NULL AND (m.attempts <> a.attempts OR m.deferrals <> a.deferrals))

-- name: find_duplicates
-- Mark messages whose event is already pending for their new destination: a duplicate is removed, and with another payload it is
-- dead-lettered.
-- with: duplicate_id=m.event_id duplicate_destination=a.resolved
UPDATE settlement AS a
  STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
  STRAIGHT_JOIN {message} AS o ON o.event_id = m.event_id AND o.destination = a.resolved
   SET a.outcome = CASE WHEN o.payload = m.payload THEN 'repeat' ELSE 'dead' END, a.counted = 0, a.error = {duplicate_error}
 WHERE a.resolved <> a.destination AND a.outcome IN ('retry', 'blocked', 'hold', 'note', 'split') AND o.id <> m.id

-- name: count_duplicates
-- Count the duplicates, and those that are dead-lettered.
SELECT coalesce(sum(outcome = 'repeat'), 0), coalesce(sum(outcome = 'dead'), 0) FROM settlement

-- name: add_attempts
-- Record every send that failed.
INSERT INTO {attempt} (event_id, destination, attempt, counted, error, seconds)
SELECT m.event_id, a.resolved, m.attempts + m.deferrals + 1 - a.counted_before_send, a.counted, a.error, a.seconds
  FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'retry' OR (a.outcome IN ('dead', 'blocked') AND a.counted)

-- name: deliver
-- Copy what was delivered to the history.
-- with: settled=settlement_rows
-- variant at_once: settled=delivered_at_once
INSERT INTO {history} (id, event_id, destination, {about}, "key", {content}, occurred_at, recorded_at,
                       attempts, deferrals, last_error, last_attempt_at, published_at, seconds)
SELECT m.id, m.event_id, a.resolved, {about:m.}, m."key", {content:m.}, m.occurred_at, m.recorded_at,
       m.attempts, m.deferrals, m.last_error, m.last_attempt_at, {now}, a.seconds
  FROM {settled} STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'delivered'

-- fragment: settlement_rows
-- The table of what is settled.
settlement AS a

-- fragment: delivered_at_once
-- What was delivered, as the table of what is settled has it.
JSON_TABLE(:delivered, '$[*]' COLUMNS (id BIGINT PATH '$[0]', destination VARCHAR(255) {bytewise} PATH '$[1]',
  resolved VARCHAR(255) {bytewise} PATH '$[2]', seconds DOUBLE PATH '$[3]', outcome VARCHAR(9) {bytewise} PATH '$[4]' DEFAULT 'delivered' ON EMPTY)) AS a

-- name: remove_positions
-- Delete messages at positions. They are looked up one by one: for most of a small table, MariaDB scans it in place of ranges of an
-- index, also of one that is forced, and a scan waits for rows of open transactions.
DELETE m FROM {positions} STRAIGHT_JOIN {message} AS m FORCE INDEX (PRIMARY) ON m.id = a.id AND m.destination = a.destination

-- fragment: positions
-- A list of positions, as rows.
JSON_TABLE(:positions, '$[*]' COLUMNS (id BIGINT PATH '$[0]', destination VARCHAR(255) {bytewise} PATH '$[1]')) AS a

-- name: dead_letter
-- Copy messages without attempts left to the dead letters.
INSERT INTO {dead_letter} ({dead_columns})
SELECT m.id, m.event_id, a.resolved, {about:m.}, m.ordering_key, m."key", {content:m.}, m.occurred_at,
       m.recorded_at, m.attempts + a.counted - a.counted_before_send, m.deferrals, a.error, coalesce(m.first_failed_at, {now}),
       CASE WHEN a.counted THEN {now} ELSE m.last_attempt_at END
  FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'dead'
 ORDER BY m.id

-- name: remove_settled
-- Delete what was delivered, dead-lettered or a duplicate.
DELETE m FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome IN ('delivered', 'dead', 'repeat')

-- name: requeue
-- Requeue what failed: a retry until its time, a blocked one until an operator decides.
UPDATE settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
   SET m.destination = a.resolved,
       m.held = CASE a.outcome WHEN 'blocked' THEN 'blocked' END,
       m.available_at = CASE a.outcome WHEN 'blocked' THEN m.available_at ELSE {now} + INTERVAL a.delay MICROSECOND END,
       m.attempts = least(m.attempts + a.counted - a.counted_before_send, {largest_count}),
       m.deferrals = least(m.deferrals + (a.outcome = 'retry' AND NOT a.counted), {largest_count}),
       m.last_error = a.error,
       m.first_failed_at = coalesce(m.first_failed_at, {now}),
       m.last_attempt_at = CASE WHEN a.outcome = 'retry' OR a.counted THEN {now} ELSE m.last_attempt_at END
 WHERE a.outcome IN ('retry', 'blocked')

-- name: hold
-- Mark messages as waiting or parked, from now on under their resolved destination.
UPDATE settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
   SET m.destination = a.resolved, m.held = :held, m.available_at = m.available_at
 WHERE a.outcome = 'hold'

-- name: count_attempt
-- Count an attempt; the message stays where it is.
UPDATE settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
   SET m.destination = a.resolved,
       m.attempts = least(m.attempts + :counted - :counted_before_send, {largest_count}),
       m.deferrals = least(m.deferrals + (NOT :counted), {largest_count}),
       m.last_error = :error,
       m.first_failed_at = coalesce(m.first_failed_at, {now}), m.last_attempt_at = {now}
 WHERE a.outcome = 'note'

-- name: split_copy
-- Add one copy per destination, each at the sequence of its original; one that is already pending stays.
INSERT INTO {message} (
  id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, available_at, held,
  attempts, deferrals, last_error, first_failed_at, last_attempt_at)
SELECT m.id, m.event_id, a.resolved, {about:m.}, m.ordering_key, {content:m.}, m.occurred_at,
       m.recorded_at, m.available_at, m.held, m.attempts, m.deferrals, m.last_error, m.first_failed_at, m.last_attempt_at
  FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'split' AND a.resolved <> a.destination
   AND NOT EXISTS (SELECT 1 FROM {message} AS o WHERE o.event_id = m.event_id AND o.destination = a.resolved)

-- name: split_replace
-- Delete the originals, except one that is among its own destinations.
DELETE m FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE NOT EXISTS (SELECT 1 FROM settlement AS d WHERE d.id = a.id AND d.destination = a.destination AND d.resolved = a.destination)
