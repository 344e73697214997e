-- name: execute_requests
-- Execute what operators requested for messages of these lanes: retry, discard, dead-letter or reschedule. Close requests
-- whose message is not pending any more.
-- with: progress=false
WITH {fence}, seen AS MATERIALIZED (
  -- Along the index of open requests, in their order: a batch costs no more for all that are open after it. As many
  -- more as may be in flight: those stay open until they are decided and must not keep others from their turn.
  SELECT r.request_id, r.action, r.event_id, r.destination, r.delay, m.event_id IS NOT NULL AS found, m.id,
    m.id IS NOT NULL AND (m.id, m.destination) IN (SELECT * FROM unnest($4::text::bigint[], $5::text::text[])) AS in_flight
  FROM {request} r LEFT JOIN {message} m ON m.event_id = ANY (ARRAY[r.event_id]) AND m.destination = r.destination
  WHERE r.done_at IS NULL
    -- Any relay closes a request for a message that is not pending.
    AND (m.event_id IS NULL OR m.lane = ANY (ARRAY(SELECT lane FROM fence)))
  ORDER BY r.request_id LIMIT $3 + cardinality($4::text::bigint[])
), asked AS MATERIALIZED (
  SELECT * FROM seen WHERE NOT in_flight ORDER BY request_id LIMIT $3
), mine AS MATERIALIZED (
  -- Of several requests for one message the others wait for the next call.
  SELECT DISTINCT ON (event_id, destination) * FROM asked ORDER BY event_id, destination, request_id
), discarded AS (
  DELETE FROM {message} m USING mine w
  WHERE w.action = 'discard' AND m.event_id = ANY (ARRAY[w.event_id]) AND m.destination = w.destination
  RETURNING w.request_id
), taken AS (
  DELETE FROM {message} m USING mine w
  WHERE w.action = 'dead_letter' AND m.event_id = ANY (ARRAY[w.event_id]) AND m.destination = w.destination
  RETURNING m.*
), dead_lettered AS (
  INSERT INTO {dead_letter} ({dead_columns})
  SELECT id, event_id, destination, {about}, ordering_key, key, {content}, {clamp_time}(occurred_at), {clamp_time}(recorded_at), attempts, deferrals,
    coalesce(last_error, 'dead-lettered by an operator'), coalesce(first_failed_at, now()), last_attempt_at FROM taken
), again AS (
  -- It keeps a time, so that it stays the first of its ordering queue and nothing overtakes it.
  UPDATE {message} m SET held = NULL, available_at = now() + w.delay * interval '1 second',
    attempts = CASE WHEN w.action = 'retry' THEN 0 ELSE m.attempts END, deferrals = greatest(m.deferrals, 1)
  FROM mine w
  WHERE w.action IN ('retry', 'reschedule') AND m.event_id = ANY (ARRAY[w.event_id]) AND m.destination = w.destination
  RETURNING w.request_id
), closed AS (
  UPDATE {request} r SET done_at = now(),
    result = CASE WHEN NOT w.found THEN 'not found' ELSE 'done' END
  FROM mine w WHERE r.request_id = ANY (ARRAY[w.request_id]) AND r.done_at IS NULL
  RETURNING r.request_id, r.action, r.event_id, r.destination, r.delay, r.requested_by, r.result, r.bulk_action_id
), audited AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT requested_by, action, event_id, jsonb_build_object('destination', destination, 'request_id', request_id)
    || CASE WHEN action = 'reschedule' THEN jsonb_build_object('delay', delay) ELSE '{}' END
  FROM closed WHERE result = 'done' AND bulk_action_id IS NULL
), done AS MATERIALIZED (
  SELECT bulk_action_id, count(*) AS done FROM closed WHERE result = 'done' AND bulk_action_id IS NOT NULL GROUP BY bulk_action_id
), bulk_actions AS MATERIALIZED (
  -- In the same order for all: relays that execute parts of the same bulk action never deadlock.
  SELECT audit_id FROM {audit} WHERE audit_id = ANY (ARRAY(SELECT bulk_action_id FROM done)) ORDER BY audit_id FOR NO KEY UPDATE
), updated_audit AS (
  UPDATE {audit} a SET {audit_progress_columns} FROM done g JOIN bulk_actions b ON b.audit_id = g.bulk_action_id WHERE a.audit_id = ANY (ARRAY[g.bulk_action_id])
)
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM closed) AS count,
       ARRAY(SELECT id::text FROM seen WHERE in_flight ORDER BY request_id) AS deferred_ids,
       ARRAY(SELECT destination FROM seen WHERE in_flight ORDER BY request_id) AS deferred_destinations

-- name: reject_request
-- Close the first open request for a message of these lanes that the database rejects, with the reason.
-- with: progress=false
WITH {fence}, first AS MATERIALIZED (
  SELECT r.request_id FROM {request} r LEFT JOIN {message} m ON m.event_id = ANY (ARRAY[r.event_id]) AND m.destination = r.destination
  WHERE r.done_at IS NULL AND (m.event_id IS NULL OR m.lane = ANY (ARRAY(SELECT lane FROM fence)))
    AND (m.id IS NULL OR (m.id, m.destination) NOT IN (SELECT * FROM unnest($4::text::bigint[], $5::text::text[])))
  ORDER BY r.request_id LIMIT 1
), closed AS (
  UPDATE {request} r SET done_at = now(), result = $3 FROM first WHERE r.request_id = ANY (ARRAY[first.request_id]) RETURNING 1
)
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM closed) AS count, 0 AS duplicates

-- fragment: audit_progress_columns
-- The entry of a bulk action counts what was done, and less is left.
count = a.count + g.done, detail = a.detail || jsonb_build_object('remaining', (a.detail->>'remaining')::bigint - g.done)
