-- name: list_events
-- List a page of events from one snapshot of message table, history and dead letters. Each is scanned along an index from position
-- (:recorded_at, :id, :after_destination) back to time :since, for at most :waiting, :delivered and :dead rows; the last of these is
-- returned whether it matches or not.
-- variant blocked: of_waiting=list_blocked
-- variant in_flight: of_waiting=list_in_flight
-- variant of_key: of_history=list_of_key
-- variant of_type: of_history=list_of_type
WITH in_flight AS {materialized} (
  {messages_in_flight}
), waiting AS (
  SELECT w.*, o.next_attempt_at, o.last_error AS outage,
         CASE WHEN w.held = 'blocked' THEN 'FAILED' WHEN f.event_id IS NOT NULL THEN 'PROCESSING' ELSE 'PENDING' END AS status
    FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n
            FROM (SELECT {listed:m.}, m.last_error, m.available_at, m.held
                    FROM {message} AS m
                   WHERE {list_from_position} AND m.recorded_at >= :since {of_waiting}
                   ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
                   LIMIT :waiting) AS m) AS w
    LEFT JOIN in_flight AS f ON f.event_id = w.event_id AND f.destination = w.destination
    LEFT JOIN {outages} AS o
      ON o.destination = w.destination AND (w.destination = '' OR w.held = 'parked' OR w.deferrals > 0)
     AND coalesce(w.held, '') NOT IN ('blocked', 'waiting')
), delivered AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n
    FROM (SELECT {listed:m.}, m.last_error, m.published_at
            FROM {history} AS m
           WHERE {list_from_position} AND m.recorded_at >= :since {of_history}
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :delivered) AS m
), dead AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n
    FROM (SELECT {listed:m.}, m.error AS last_error
            FROM {dead_letter} AS m
           WHERE {list_from_position} AND m.recorded_at >= :since
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :dead) AS m
)
SELECT recorded_at, id, destination, event_id, status, event_type, "key", attempts,
       CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END AS retry_count, last_error, last_attempt_at,
       next_retry_at, published_at, wanted, edge
  FROM (SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, status, event_type, "key", attempts, deferrals,
                 coalesce(last_error, outage) AS last_error, last_attempt_at,
                 CASE WHEN coalesce(held, '') <> 'blocked' THEN coalesce(available_at, next_attempt_at) END AS next_retry_at,
                 CAST(NULL AS {time_type}) AS published_at, wanted, edge
            FROM (SELECT m.*, n = :waiting AS edge,
                         {list_wanted} AND status = coalesce(:status, status)
                         AND (NOT :retrying OR (attempts + deferrals > 0 AND last_attempt_at IS NOT NULL AND status <> 'FAILED'))
                           AS wanted
                    FROM waiting AS m) AS m
           WHERE wanted OR edge ORDER BY n LIMIT :most) AS of_waiting
        UNION ALL
        SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, 'PUBLISHED', event_type, "key", attempts, deferrals, last_error,
                 last_attempt_at, CAST(NULL AS {time_type}), published_at, wanted, edge
            FROM (SELECT m.*, n = :delivered AS edge, {list_wanted} AS wanted FROM delivered AS m) AS m
           WHERE wanted OR edge ORDER BY n LIMIT :most) AS of_history
        UNION ALL
        SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, 'FAILED', event_type, "key", attempts, deferrals, last_error,
                 last_attempt_at, CAST(NULL AS {time_type}) AS next_retry_at, CAST(NULL AS {time_type}) AS published_at, wanted, edge
            FROM (SELECT m.*, n = :dead AS edge, {list_wanted} AS wanted FROM dead AS m) AS m
           WHERE wanted OR edge ORDER BY n LIMIT :most) AS of_dead) AS found

-- fragment: listed
-- The columns of a list that all three tables have.
{row}recorded_at, {row}id, {row}destination, {row}event_id, {row}event_type, {row}"key", {row}aggregate_type, {row}aggregate_id,
{row}attempts, {row}deferrals, {row}last_attempt_at

-- fragment: list_from_position
-- From position (:recorded_at, :id, :after_destination) back. With a strict comparison of all three, PostgreSQL would expect few rows of
-- the same time, although one transaction may have recorded a million: it would read and sort them all.
{at_or_before:recorded_at} AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination < :after_destination)

-- fragment: list_wanted
-- Whether a row has the type, the key, the destination, the aggregate and the error of the filter.
m.event_type = coalesce(:type, m.event_type) AND (CAST(:key AS {text_type}) IS NULL OR coalesce(m.key = :key, false))
AND m.destination = coalesce(:destination, m.destination)
AND (CAST(:aggregate_type AS {text_type}) IS NULL OR coalesce(m.aggregate_type = :aggregate_type, false))
AND (CAST(:aggregate_id AS {text_type}) IS NULL OR coalesce(m.aggregate_id = :aggregate_id, false))
AND (CAST(:error AS {text_type}) IS NULL OR coalesce({position_of_text}(m.last_error, :error) > 0, false))

-- fragment: list_blocked
-- Of pending messages, only those that block their key until an operator decides.
AND {is_blocked:m.}

-- fragment: list_in_flight
-- Of pending messages, only those that a relay has in flight.
AND (m.event_id, m.destination) IN (SELECT event_id, destination FROM in_flight)

-- fragment: list_of_key
-- Of delivered messages, only one key, by its own index.
AND m.key = :key

-- fragment: list_of_type
-- Of delivered messages, only one type, by its own index.
AND m.event_type = :type

-- fragment: outages
-- What events wait for in an outage: the error and the next attempt of each destination that fails, and under '' the
-- first of them while no relay can send anywhere, for events that are not routed yet.
(
  SELECT d.destination, d.last_error, d.next_attempt_at FROM {destination} AS d
  UNION ALL
  SELECT * FROM (SELECT '' AS destination, d.last_error, d.next_attempt_at FROM {destination} AS d
                  WHERE d.last_error IS NOT NULL
                    AND EXISTS (SELECT 1 FROM {relay} AS r, {breakers_of_relay} AS b
                                 WHERE r.lease_until > {now} AND b.key = d.destination AND b.value <> 'closed')
                    AND NOT EXISTS (SELECT 1 FROM {relay} AS r, {breakers_of_relay} AS b
                                     WHERE r.lease_until > {now} AND b.value = 'closed')
                  ORDER BY d.next_attempt_at LIMIT 1) AS first
)

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
