-- name: show_event
-- All of one event: pending, delivered and dead-lettered, with the number of its dead letter.
SELECT v.id, v.event_id, v.destination, v.status, v.event_type, v.aggregate_type, v.aggregate_id, v.key, v.payload_bytes,
       v.content_type, v.headers{as_text}, v.schema_version, v.correlation_id, v.causation_id, v.trace_id, v.occurred_at,
       v.created_at, v.published_at, h.seconds, v.attempts, v.retry_count, v.last_error, v.last_attempt_at,
       v.next_retry_at, v.locked_by, v.locked_at, d.dead_letter_id, d.first_failed_at, d.dead_lettered_at
  FROM {event} AS v
  LEFT JOIN {history} AS h
    ON h.event_id = v.event_id AND h.id = v.id AND h.destination = v.destination AND h.published_at = v.published_at
  LEFT JOIN {dead_letter} AS d
    ON v.status = 'FAILED' AND d.event_id = v.event_id AND d.id = v.id AND d.destination = v.destination
 WHERE v.event_id = :event_id
 ORDER BY v.created_at, v.id, v.destination

-- name: show_failures
-- The latest failed sends of one event.
SELECT destination, attempt, counted, error, attempted_at, seconds
  FROM {attempt}
 WHERE event_id = :event_id
 ORDER BY attempt_id DESC
 LIMIT 100

-- name: show_requests
-- The open operator requests for one event, in the order of asking.
SELECT action, destination, delay, requested_by, requested_at
  FROM {request}
 WHERE event_id = :event_id AND done_at IS NULL
 ORDER BY request_id
 LIMIT 100

-- name: list_dead_letters
-- A page of dead letters, the newest first, for a limited number of rows; the last of these is returned whether it matches
-- or not.
-- variant of_event: narrowed=dead_of_event
-- variant of_key: narrowed=dead_of_key
-- variant of_type: narrowed=dead_of_type
SELECT dead_letter_id, event_id, destination, event_type, key, error, attempts, recorded_at, first_failed_at, dead_lettered_at, wanted, edge
  FROM (SELECT m.*, n = :scan AS edge,
               m.event_type = coalesce(:type, m.event_type) AND (CAST(:key AS text) IS NULL OR m.key = :key)
                 AND m.destination = coalesce(:destination, m.destination) AND m.dead_lettered_at >= :since
                 AND (CAST(:error AS text) IS NULL OR {position_of_text}(m.error, :error) > 0)
                 AND m.event_id = coalesce(:event_id, m.event_id) AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.dead_letter_id DESC) AS n
                  FROM (SELECT m.dead_letter_id, m.event_id, m.destination, m.event_type, m.key, m.error, m.attempts, m.recorded_at,
                               m.first_failed_at, m.dead_lettered_at
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
-- Dead letters by their numbers, whole, the newest first.
SELECT id, event_id, destination, 'FAILED', {about}, key, {payload_bytes}, content_type, headers{as_text}, {context},
       occurred_at, recorded_at, NULL, NULL, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       error, last_attempt_at, NULL, NULL, NULL, dead_letter_id, first_failed_at, dead_lettered_at
  FROM {dead_letter}
 WHERE dead_letter_id {is_among_dead_letter_ids}
 ORDER BY dead_letter_id DESC

-- name: read_dead_letter
-- The content of a dead letter; it never changes.
SELECT destination, {payload_bytes}, headers{as_text} FROM {dead_letter} WHERE dead_letter_id = :dead_letter_id

-- name: keys_busiest
-- The keys with the most messages among those that were recorded first.
SELECT key, count(*)
  FROM (SELECT key FROM {message} ORDER BY recorded_at, id LIMIT :most) AS first
 WHERE key IS NOT NULL
 GROUP BY key
 ORDER BY count(*) DESC, key
 LIMIT :limit
