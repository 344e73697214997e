-- name: open_requests
-- Read open operator requests in their order, with the row and the sequence of the message if it is pending.
SELECT r.request_id, r.action, r.event_id, r.destination, r.delay, r.requested_by, r.bulk_action_id, m.row_id, m.id
  FROM {request} AS r
  LEFT JOIN {message} AS m ON m.event_id = r.event_id AND m.destination = r.destination
 WHERE r.done_at IS NULL
 ORDER BY r.request_id
 LIMIT :limit

-- name: request_begin
-- Mark the state before one request is executed.
SAVEPOINT request

-- name: request_undo
-- Return to the state before the request.
ROLLBACK TO request

-- name: request_end
-- Keep what the request changed.
RELEASE request

-- name: request_retry
-- Make a pending message due now or later. It counts a deferral at least, so that it stays the first of its ordering queue.
UPDATE {message}
   SET held = NULL,
       available_at = {future:delay},
       attempts = CASE :action WHEN 'retry' THEN 0 ELSE attempts END,
       deferrals = max(deferrals, 1)
 WHERE row_id = :row_id

-- name: request_dead_letter
-- Copy a pending message to the dead letters, because an operator wants its key to go on.
INSERT INTO {dead_letter} ({dead_columns})
SELECT id, event_id, destination, {about}, ordering_key, key, {content}, occurred_at,
       recorded_at, attempts, deferrals, coalesce(last_error, 'dead-lettered by an operator'),
       coalesce(first_failed_at, {now}), last_attempt_at
  FROM {message} WHERE row_id = :row_id

-- name: request_discard
-- Delete a pending message.
DELETE FROM {message} WHERE row_id = :row_id

-- name: request_close
-- Close a request with its result.
UPDATE {request} SET done_at = {now}, result = :result WHERE request_id = :request_id

-- name: request_audit
-- Write to the audit log who requested what for which event.
INSERT INTO {audit} (who, what, subject, detail)
VALUES (:requested_by, :action, :event_id,
        CASE :action
          WHEN 'reschedule' THEN json_object('destination', :destination, 'request_id', :request_id, 'delay', :delay)
          ELSE json_object('destination', :destination, 'request_id', :request_id)
        END)
