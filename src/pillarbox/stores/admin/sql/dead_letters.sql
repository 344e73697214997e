-- name: list_dead_letters
-- List a page of dead letters, the newest first, scanning a limited number of rows; the last of these is returned
-- whether it matches or not.
-- variant of_event: narrowed=dead_of_event
-- variant of_key: narrowed=dead_of_key
-- variant of_type: narrowed=dead_of_type
SELECT dead_letter_id, event_id, destination, event_type, "key", error, attempts, recorded_at, first_failed_at,
       dead_lettered_at, wanted, edge
  FROM (SELECT m.*, n = :scan AS edge,
               m.event_type = coalesce(:type, m.event_type) AND (CAST(:key AS {text_type}) IS NULL OR m.key = :key)
                 AND m.destination = coalesce(:destination, m.destination) AND m.dead_lettered_at >= :since
                 AND (CAST(:error AS {text_type}) IS NULL OR {position_of_text}(m.error, :error) > 0)
                 AND m.event_id = coalesce(:event_id, m.event_id) AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.dead_letter_id DESC) AS n
                  FROM (SELECT m.dead_letter_id, m.event_id, m.destination, m.event_type, m.key, m.error, m.attempts,
                               m.recorded_at, m.first_failed_at, m.dead_lettered_at
                          FROM {dead_letter} AS m
                         WHERE m.dead_letter_id < :before {narrowed}
                         ORDER BY m.dead_letter_id DESC
                         LIMIT :scan) AS l) AS m) AS found
 WHERE wanted OR edge
 ORDER BY dead_letter_id DESC
 LIMIT :most

-- fragment: dead_of_event
-- Dead letters of one event, by its own index.
AND m.event_id = :event_id

-- fragment: dead_of_key
-- Dead letters of one key, by its own index.
AND m.key = :key

-- fragment: dead_of_type
-- Dead letters of one type, by its own index.
AND m.event_type = :type

-- name: dead_letter_details
-- Read dead letters by their numbers, in full, the newest first.
SELECT id, event_id, destination, 'dead_lettered', {about}, "key", {payload_bytes}, content_type, headers{as_text}, {context},
       occurred_at, recorded_at, NULL, NULL, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       error, last_attempt_at, NULL, NULL, NULL, dead_letter_id, first_failed_at, dead_lettered_at
  FROM {dead_letter}
 WHERE dead_letter_id {among:dead_letter_ids}
 ORDER BY dead_letter_id DESC

-- name: read_dead_letter
-- Read the content of a dead letter; it never changes.
SELECT destination, {payload_bytes}, headers{as_text} FROM {dead_letter} WHERE dead_letter_id = :dead_letter_id

-- name: lock_dead_letters
-- Lock dead letters, so that two operators do not retry or discard the same one; the second finds that it is gone.
SELECT dead_letter_id, event_id, destination
  FROM {dead_letter}
 WHERE dead_letter_id {among:dead_letter_ids}
 ORDER BY dead_letter_id {for_update}

-- name: requeue_dead_letters
-- Copy dead letters to the end of their keys in their old order, with attempts at zero. Those whose event is already
-- pending are left out. The one deferral tells the relay to send the message although history or ledger may have it.
-- with: body=stored_body
-- variant edited: body=edited_body
{insert_new} INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
SELECT event_id, destination, {about}, ordering_key, {body}, {context}, occurred_at, recorded_at, 1
  FROM {dead_letter}
 WHERE dead_letter_id {among:dead_letter_ids}
 ORDER BY id, dead_letter_id
{skip_existing}
RETURNING event_id, destination

-- fragment: stored_body
-- The payload and the headers of a dead letter as they are.
payload, content_type, headers

-- fragment: edited_body
-- The payload and the headers that an operator wrote.
:payload, content_type, :headers{as_json}

-- name: reopen_ledger
-- Let the ledger expect these messages again, because an operator wants them sent.
UPDATE {ledger} AS l {with_pairs} SET status = 'PROCESSING', send_number = NULL, updated_at = {now}
 {from_pairs}
 WHERE l.event_id = p.event_id AND l.destination = p.destination

-- name: audit_dead_letters
-- Enter in the audit what an operator did to each of these dead letters.
INSERT INTO {audit} (who, what, subject, detail)
SELECT {operator}, :what, event_id, {json_object}('destination', destination, 'dead_letter_id', dead_letter_id)
  FROM {dead_letter}
 WHERE dead_letter_id {among:dead_letter_ids}
 ORDER BY dead_letter_id

-- name: delete_dead_letters
-- Delete dead letters by their numbers.
DELETE FROM {dead_letter} WHERE dead_letter_id {among:dead_letter_ids} RETURNING dead_letter_id
