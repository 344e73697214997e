-- Do what people asked for messages of my lanes: retry now, discard, bury or reschedule; close what no longer waits.
WITH {fence}, seen AS MATERIALIZED (
  -- Along the index of what is open, in the order of asking: a bite costs no more for all that waits behind it. As many
  -- more as may be in flight: those stay open until they are decided and must not keep others from their turn.
  SELECT r.request_id, r.action, r.event_id, r.destination, r.delay, m.event_id IS NOT NULL AS found, m.id,
    m.id IS NOT NULL AND (m.id, m.destination) IN (SELECT * FROM unnest($4::text::bigint[], $5::text::text[])) AS in_flight
  FROM {request} r LEFT JOIN {message} m ON m.event_id = ANY (ARRAY[r.event_id]) AND m.destination = r.destination
  WHERE r.done_at IS NULL
    -- A request for a message that does not wait is anybody's to close.
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
  WHERE w.action = 'bury' AND m.event_id = ANY (ARRAY[w.event_id]) AND m.destination = w.destination
  RETURNING m.*
), buried AS (
  INSERT INTO {dead} (id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload,
    content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, attempts, tries,
    error, first_failed_at, last_attempt_at)
  SELECT id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, {readable}(occurred_at), {readable}(recorded_at), attempts, tries,
    coalesce(last_error, 'sent to the dead letters by a person'), coalesce(first_failed_at, now()), last_attempt_at FROM taken
), again AS (
  -- It keeps a time, so that it stays the head of its line and nothing behind it slips past.
  UPDATE {message} m SET held = NULL, available_at = now() + w.delay * interval '1 second',
    attempts = CASE WHEN w.action = 'retry' THEN 0 ELSE m.attempts END, tries = greatest(m.tries, 1)
  FROM mine w
  WHERE w.action IN ('retry', 'reschedule') AND m.event_id = ANY (ARRAY[w.event_id]) AND m.destination = w.destination
  RETURNING w.request_id
), closed AS (
  UPDATE {request} r SET done_at = now(),
    result = CASE WHEN NOT w.found THEN 'not found' ELSE 'done' END
  FROM mine w WHERE r.request_id = ANY (ARRAY[w.request_id]) AND r.done_at IS NULL
  RETURNING r.request_id, r.action, r.event_id, r.destination, r.delay, r.asked_by, r.result, r.act
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT asked_by, action, event_id, jsonb_build_object('destination', destination, 'request_id', request_id)
    || CASE WHEN action = 'reschedule' THEN jsonb_build_object('delay', delay) ELSE '{}' END
  FROM closed WHERE result = 'done' AND act IS NULL
), done AS MATERIALIZED (
  SELECT act, count(*) AS done FROM closed WHERE result = 'done' AND act IS NOT NULL GROUP BY act
), acts AS MATERIALIZED (
  -- In the same order for all: relays that carry out parts of the same acts never wait for each other in a circle.
  SELECT audit_id FROM {audit} WHERE audit_id = ANY (ARRAY(SELECT act FROM done)) ORDER BY audit_id FOR NO KEY UPDATE
), grown AS (
  UPDATE {audit} a SET {grows} FROM done g JOIN acts ON acts.audit_id = g.act WHERE a.audit_id = ANY (ARRAY[g.act])
)
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM closed) AS count,
       ARRAY(SELECT id::text FROM seen WHERE in_flight ORDER BY request_id) AS deferred_ids,
       ARRAY(SELECT destination FROM seen WHERE in_flight ORDER BY request_id) AS deferred_destinations
