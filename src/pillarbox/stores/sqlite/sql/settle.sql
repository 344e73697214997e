-- name: clear_settlement
-- Empty the table of what is settled.
DELETE FROM temp.settlement

-- name: fill_settlement
-- Enter what is settled, by sequence: [[id, destination, new destination, outcome, counted, counted_before_send, delay, error, attempts, deferrals,
-- seconds], …]. What was counted before, so that only the answer was lost, is not counted again. A copy is found by the
-- sequence it shares, every other message by its row.
INSERT INTO temp.settlement (row_id, destination, outcome, counted, counted_before_send, delay, error, seconds)
SELECT m.row_id, v.destination, v.outcome, v.counted, v.counted_before_send, v.delay, v.error, v.seconds
  FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS waits_for,
               json_extract(value, '$[2]') AS destination, json_extract(value, '$[3]') AS outcome,
               json_extract(value, '$[4]') AS counted, json_extract(value, '$[5]') AS counted_before_send,
               json_extract(value, '$[6]') AS delay, json_extract(value, '$[7]') AS error,
               json_extract(value, '$[8]') AS attempts, json_extract(value, '$[9]') AS deferrals,
               json_extract(value, '$[10]') AS seconds
          FROM json_each(:messages)) AS v
 CROSS JOIN {message} AS m
 WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c
                             WHERE c.shared_id = v.id AND c.destination = v.waits_for), v.id)
   AND m.id = v.id AND m.destination = v.waits_for
   AND (v.attempts IS NULL OR (m.attempts = v.attempts AND m.deferrals = v.deferrals))

-- name: set_destination
-- Give messages that stay pending the destination they are routed to, except where that event is already pending for it.
UPDATE OR IGNORE {message} AS m
   SET destination = d.destination
  FROM temp.settlement AS d
 WHERE m.row_id = d.row_id AND m.destination <> d.destination AND d.outcome IN ('retry', 'blocked', 'hold', 'note')

-- name: find_duplicates
-- Find messages whose event is already pending for their new destination: a duplicate is removed, and with another payload it is
-- dead-lettered.
-- with: duplicate_id=m.event_id duplicate_destination=d.destination
UPDATE temp.settlement AS d
   SET outcome = CASE WHEN CAST(o.payload AS BLOB) = CAST(m.payload AS BLOB) THEN 'repeat' ELSE 'dead' END,
       counted = 0,
       error = {duplicate_error}
  FROM {message} AS m
 CROSS JOIN {message} AS o
 WHERE m.row_id = d.row_id AND m.destination <> d.destination
   AND d.outcome IN ('retry', 'blocked', 'hold', 'note', 'split')
   AND o.event_id = m.event_id AND o.destination = d.destination
   AND (d.outcome <> 'split' OR o.id <> m.id)
RETURNING outcome

-- name: add_attempts
-- Record every send that failed.
INSERT INTO {attempt} (event_id, destination, attempt, counted, error, seconds)
SELECT m.event_id, d.destination, m.attempts + m.deferrals + 1 - d.counted_before_send, d.counted, d.error, d.seconds
  FROM temp.settlement AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND (d.outcome = 'retry' OR (d.outcome IN ('dead', 'blocked') AND d.counted))

-- name: deliver
-- Copy what was delivered to the history.
-- with: settled=temp.settlement
-- variant at_once: settled=delivered_at_once
INSERT INTO {history} (id, event_id, destination, {about}, key, {content}, occurred_at, recorded_at,
                       attempts, deferrals, last_error, last_attempt_at, published_at, seconds)
SELECT m.id, m.event_id, d.destination, {about:m.}, m.key, {content:m.}, m.occurred_at, m.recorded_at,
       m.attempts, m.deferrals, m.last_error, m.last_attempt_at, {now}, d.seconds
  FROM {settled} AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome = 'delivered'

-- fragment: delivered_at_once
-- What was delivered, as the table of what is settled has it, straight from
-- {"destination so far": {"new destination": {"seconds": [id, …]}}}; nothing under another epoch, because a writer locks out all
-- others before its first row. fill_settlement tells how a sequence is found.
(SELECT m.row_id, d.key AS destination, 'delivered' AS outcome, CAST(nullif(s.key, 'null') AS REAL) AS seconds
   FROM json_each(:delivered) AS w
  CROSS JOIN json_each(w.value) AS d
  CROSS JOIN json_each(d.value) AS s
  CROSS JOIN json_each(s.value) AS i
  CROSS JOIN {message} AS m
  WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c WHERE c.shared_id = i.value AND c.destination = w.key), i.value)
    AND m.id = i.value AND m.destination = w.key
    AND (SELECT l.epoch FROM {lane} AS l WHERE l.lane = 0) = :epoch)

-- name: remove_delivered
-- Delete what was delivered; a transaction of its own where nothing is kept.
DELETE FROM {message} WHERE row_id IN (SELECT row_id FROM {delivered_at_once})

-- name: dead_letter
-- Copy messages without attempts left to the dead letters.
INSERT INTO {dead_letter} ({dead_columns})
SELECT m.id, m.event_id, d.destination, {about:m.}, m.ordering_key, m.key, {content:m.}, m.occurred_at,
       m.recorded_at, m.attempts + d.counted - d.counted_before_send, m.deferrals, d.error, coalesce(m.first_failed_at, {now}),
       CASE WHEN d.counted THEN {now} ELSE m.last_attempt_at END
  FROM temp.settlement AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome = 'dead'
 ORDER BY m.id

-- name: remove_settled
-- Delete what was delivered, dead-lettered or a duplicate.
DELETE FROM {message}
 WHERE row_id IN (SELECT row_id FROM temp.settlement WHERE outcome IN ('delivered', 'dead', 'repeat'))

-- name: requeue
-- Requeue what failed: a retry until its time, a blocked one until an operator decides.
UPDATE {message} AS m
   SET held = CASE d.outcome WHEN 'blocked' THEN 'blocked' END,
       available_at = CASE d.outcome
         WHEN 'blocked' THEN m.available_at
         ELSE {retry_time:d.}
       END,
       attempts = min(m.attempts + d.counted - d.counted_before_send, {largest_count}),
       deferrals = min(m.deferrals + (d.outcome = 'retry' AND NOT d.counted), {largest_count}),
       last_error = d.error,
       first_failed_at = coalesce(m.first_failed_at, {now}),
       last_attempt_at = CASE WHEN d.outcome = 'retry' OR d.counted THEN {now} ELSE m.last_attempt_at END
  FROM temp.settlement AS d
 WHERE m.row_id = d.row_id AND d.outcome IN ('retry', 'blocked')

-- name: hold
-- Mark what is settled as waiting or parked.
UPDATE {message} SET held = :held WHERE row_id IN (SELECT row_id FROM temp.settlement WHERE outcome = 'hold')

-- name: count_attempt
-- Count an attempt; the message stays where it is.
UPDATE {message}
   SET attempts = min(attempts + :counted - :counted_before_send, {largest_count}), deferrals = min(deferrals + NOT :counted, {largest_count}), last_error = :error,
       first_failed_at = coalesce(first_failed_at, {now}), last_attempt_at = {now}
 WHERE row_id IN (SELECT row_id FROM temp.settlement WHERE outcome = 'note')

-- name: split_copy
-- Add one copy per destination, each at the sequence of its original; one that is already pending stays.
INSERT OR IGNORE INTO {message} (
  shared_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, available_at, held,
  attempts, deferrals, last_error, first_failed_at, last_attempt_at)
SELECT m.id, m.event_id, d.destination, {about:m.}, m.ordering_key, {content:m.}, m.occurred_at,
       m.recorded_at, m.available_at, m.held, m.attempts, m.deferrals, m.last_error, m.first_failed_at, m.last_attempt_at
  FROM temp.settlement AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND m.destination <> d.destination

-- name: split_replace
-- Delete the originals, except one that is among its own destinations.
DELETE FROM {message}
 WHERE row_id IN (SELECT row_id FROM temp.settlement)
   AND NOT EXISTS (SELECT 1 FROM temp.settlement AS d
                    WHERE d.row_id = {message}.row_id AND d.destination = {message}.destination)
