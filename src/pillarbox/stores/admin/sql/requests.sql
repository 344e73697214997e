-- name: add_requests
-- Ask the owners of the lanes to do something with pending messages.
INSERT INTO {request} (action, event_id, destination, delay, requested_by, bulk_action_id)
SELECT :action, p.event_id, p.destination, CAST(:delay AS double precision), {operator}, CAST(:bulk_action AS bigint)
  FROM {pairs}
 ORDER BY p.n
RETURNING request_id

-- name: drain_relays
-- Ask a relay by id or name, or every relay with a valid lease, to drain.
UPDATE {relay} SET drain_requested_by = {operator}
 WHERE {lease_is_valid} AND (id = :relay OR name = :relay OR :relay = '*')
RETURNING id

-- name: audit_subjects
-- Enter in the audit what an operator did to each of these subjects.
INSERT INTO {audit} (who, what, subject) SELECT {operator}, :what, s.subject FROM {subjects}

-- name: override_destination
-- Override the state of a destination: of paused, breaker and rate limit those that the caller sets.
INSERT INTO {destination} AS d (destination, paused, breaker, rate_limit, changed_by)
VALUES (:destination, :paused, :breaker, :rate_limit, {operator})
ON CONFLICT (destination) DO UPDATE
   SET paused = CASE WHEN :sets_paused THEN excluded.paused ELSE d.paused END,
       breaker = CASE WHEN :sets_breaker THEN excluded.breaker ELSE d.breaker END,
       rate_limit = CASE WHEN :sets_rate_limit THEN excluded.rate_limit ELSE d.rate_limit END,
       changed_at = {now},
       changed_by = excluded.changed_by
