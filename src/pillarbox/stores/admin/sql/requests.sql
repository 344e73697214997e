-- name: add_requests
-- Ask the owners of the lanes to do something with pending messages.
INSERT INTO {request} (action, event_id, destination, delay, requested_by, bulk_action_id)
SELECT :action, p.event_id, p.destination, CAST(:delay AS {float_type}), {operator}, CAST(:bulk_action AS {bigint_type})
  FROM {pairs}
 ORDER BY p.n
RETURNING request_id

-- name: find_relays_to_drain
-- Find a relay by id or name, or every relay with a valid lease, and lock its row.
SELECT id FROM {relay}
 WHERE {lease_is_valid} AND (id = :relay OR name = :relay OR :relay = '*')
 ORDER BY id {for_update}

-- name: drain_relays
-- Ask relays to drain.
UPDATE {relay} SET drain_requested_by = {operator} WHERE id {among_texts:relays}

-- name: audit_subjects
-- Enter in the audit what an operator did to each of these subjects.
INSERT INTO {audit} (who, what, subject) SELECT {operator}, :what, s.subject FROM {subjects}

-- name: override_destination
-- Override the state of a destination: of paused, breaker and rate limit those that the caller sets.
INSERT INTO {destination} {as_old} (destination, paused, breaker, rate_limit, changed_by)
VALUES (:destination, :paused, :breaker, :rate_limit, {operator})
{on_same_destination}
       paused = CASE WHEN :sets_paused THEN {new:paused} ELSE {old:paused} END,
       breaker = CASE WHEN :sets_breaker THEN {new:breaker} ELSE {old:breaker} END,
       rate_limit = CASE WHEN :sets_rate_limit THEN {new:rate_limit} ELSE {old:rate_limit} END,
       changed_at = {now},
       changed_by = {new:changed_by}
