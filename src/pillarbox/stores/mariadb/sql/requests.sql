-- name: open_requests
-- Read open operator requests in their order, with the sequence of the message if it is pending in one of these lanes. Any relay
-- closes a request for a message that is not pending.
SELECT r.request_id, r.action, r.event_id, r.destination, r.delay, r.bulk_action_id, m.id
  FROM {request} AS r FORCE INDEX (open_idx)
  LEFT JOIN {message} AS m ON m.event_id = r.event_id AND m.destination = r.destination
 WHERE r.done_at IS NULL AND (m.id IS NULL OR m.lane IN :lanes_in)
 ORDER BY r.request_id
 LIMIT :limit

-- name: request_retry
-- Make pending messages due now or later. They count a deferral at least, so that they stay the first of their ordering queue.
UPDATE JSON_TABLE(:requests, '$[*]' COLUMNS (id BIGINT PATH '$[0]', destination VARCHAR(255) {bytewise} PATH '$[1]',
         delay BIGINT PATH '$[2]', action VARCHAR(11) {bytewise} PATH '$[3]')) AS w
  STRAIGHT_JOIN {message} AS m ON m.id = w.id AND m.destination = w.destination
   SET m.held = NULL,
       m.available_at = {now} + INTERVAL w.delay MICROSECOND,
       m.attempts = CASE w.action WHEN 'retry' THEN 0 ELSE m.attempts END,
       m.deferrals = greatest(m.deferrals, 1)

-- name: request_dead_letter
-- Copy pending messages to the dead letters, because an operator wants their keys to go on.
INSERT INTO {dead_letter} ({dead_columns})
SELECT m.id, m.event_id, m.destination, {about:m.}, m.ordering_key, m."key", {content:m.}, m.occurred_at,
       m.recorded_at, m.attempts, m.deferrals, coalesce(m.last_error, 'dead-lettered by an operator'),
       coalesce(m.first_failed_at, {now}), m.last_attempt_at
  FROM {positions} STRAIGHT_JOIN {message} AS m FORCE INDEX (PRIMARY) ON m.id = a.id AND m.destination = a.destination
 ORDER BY m.id

-- name: request_close
-- Close requests with their results.
UPDATE {request}
   SET done_at = {now}, result = CASE WHEN request_id IN :done_in THEN 'done' ELSE 'not found' END
 WHERE request_id IN :requests_in AND done_at IS NULL

-- name: request_reject
-- Close a request that the database rejects, with the reason.
UPDATE {request} SET done_at = {now}, result = :error WHERE request_id = :request

-- name: request_audit
-- Write to the audit log who requested what for which event.
INSERT INTO {audit} (who, what, subject, detail)
SELECT requested_by, action, event_id,
       CASE action WHEN 'reschedule' THEN json_object('destination', destination, 'request_id', request_id, 'delay', delay)
                   ELSE json_object('destination', destination, 'request_id', request_id) END
  FROM {request}
 WHERE request_id IN :requests_in
 ORDER BY request_id

-- name: request_bulk_progress
-- Count in the entries of bulk actions what was done; always in the same order, so that relays do not deadlock.
UPDATE JSON_TABLE(:bulk_actions, '$[*]' COLUMNS (audit_id BIGINT PATH '$[0]', done BIGINT PATH '$[1]')) AS g
  STRAIGHT_JOIN {audit} AS a ON a.audit_id = g.audit_id
   SET a.count = a.count + g.done,
       a.detail = json_set(a.detail, '$.remaining', CAST(json_value(a.detail, '$.remaining') AS SIGNED) - g.done)
