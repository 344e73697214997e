-- name: list_events
-- List a page of events from one snapshot of message table, history and dead letters. Each is scanned along an index from position
-- (:recorded_at, :id, :after_destination) back to time :since, for at most :waiting, :delivered and :dead rows; the last of these is
-- returned whether it matches or not. Of a state with few messages, all of them are read by the index of the state.
-- with: pending_rows=list_all_pending state_columns=listed_pending
-- variant ready: pending_rows=rows_in_state in_state=is_ready state_order=order_ready
-- variant retrying: pending_rows=rows_retrying
-- variant delayed: pending_rows=rows_in_state in_state=is_delayed state_order=order_delayed
-- variant waiting: pending_rows=rows_in_state in_state=is_waiting state_order=order_waiting
-- variant parked: pending_rows=rows_in_state in_state=is_parked state_order=order_parked
-- variant blocked: pending_rows=list_all_pending of_waiting=list_blocked
-- variant in_flight: pending_rows=list_all_pending of_waiting=list_in_flight
-- variant of_key: of_history=list_of_key
-- variant of_type: of_history=list_of_type
WITH in_flight AS {materialized} (
  {messages_in_flight}
), waiting AS (
  SELECT w.*, o.next_attempt_at, o.last_error AS outage,
         CASE WHEN f.event_id IS NOT NULL AND coalesce(w.held, '') <> 'blocked' THEN 'in_flight' ELSE {stored_state:w.} END AS state
    FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n
            FROM (SELECT {listed:m.}, m.last_error, m.available_at, m.held
                    FROM {pending_rows} AS m
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
SELECT recorded_at, id, destination, event_id, state, event_type, "key", attempts,
       CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END AS retry_count, last_error, last_attempt_at,
       next_retry_at, published_at, wanted, edge
  FROM (SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, state, event_type, "key", attempts, deferrals,
                 coalesce(last_error, outage) AS last_error, last_attempt_at,
                 CASE WHEN coalesce(held, '') <> 'blocked' THEN coalesce(available_at, next_attempt_at) END AS next_retry_at,
                 CAST(NULL AS {time_type}) AS published_at, wanted, edge
            FROM (SELECT m.*, n = :waiting AS edge,
                         {list_wanted} AND state = coalesce(:state, state)
                         AND (CAST(:status AS {text_type}) IS NULL
                              OR :status = CASE state WHEN 'blocked' THEN 'FAILED' WHEN 'in_flight' THEN 'PROCESSING' ELSE 'PENDING' END)
                           AS wanted
                    FROM waiting AS m) AS m
           WHERE wanted OR edge ORDER BY n LIMIT :most) AS of_waiting
        UNION ALL
        SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, 'published', event_type, "key", attempts, deferrals, last_error,
                 last_attempt_at, CAST(NULL AS {time_type}), published_at, wanted, edge
            FROM (SELECT m.*, n = :delivered AS edge, {list_wanted} AS wanted FROM delivered AS m) AS m
           WHERE wanted OR edge ORDER BY n LIMIT :most) AS of_history
        UNION ALL
        SELECT * FROM (
          SELECT recorded_at, id, destination, event_id, 'dead_lettered', event_type, "key", attempts, deferrals, last_error,
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

-- fragment: list_all_pending
-- All pending messages.
{message}

-- fragment: listed_pending
-- The columns of a list that pending messages have.
{listed:row}, {row}last_error, {row}available_at, {row}held

-- fragment: rows_in_state
-- The pending messages of a state up to a limit, along its index: the order keeps PostgreSQL from scanning the table for them.
(SELECT {state_columns:p.} FROM {message} AS p WHERE {in_state:p.} {state_order:p.} LIMIT :beyond)

-- fragment: rows_retrying_of_two
-- The retries among the first messages of two indexes: one has parked and blocked messages besides, the other delayed ones. If one of
-- the indexes has fewer messages than the limit, these are all retries.
(SELECT * FROM (SELECT {state_columns:p.} FROM {message} AS p WHERE {holds_queue:p.} {order_holding:p.} LIMIT :beyond) AS holding
  WHERE held IS NULL
 UNION
 SELECT * FROM (SELECT {state_columns:p.} FROM {message} AS p WHERE {is_scheduled:p.} {order_due:p.} LIMIT :beyond) AS due
  WHERE attempts + deferrals > 0)

-- fragment: complete_of_two
-- Whether one of the two indexes has fewer messages than the limit.
((SELECT count(*) FROM (SELECT 1 FROM {message} AS p WHERE {holds_queue:p.} {order_holding:p.} LIMIT :beyond) AS holding) < :beyond
 OR (SELECT count(*) FROM (SELECT 1 FROM {message} AS p WHERE {is_scheduled:p.} {order_due:p.} LIMIT :beyond) AS due) < :beyond)

-- fragment: stored_state
-- The state that the row of a pending message has.
CASE WHEN {row}held IS NOT NULL THEN {row}held WHEN {row}available_at IS NULL THEN 'ready'
     WHEN {row}attempts + {row}deferrals > 0 THEN 'retrying' ELSE 'delayed' END

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
SELECT v.id, v.event_id, v.destination,
       CASE WHEN d.dead_letter_id IS NOT NULL THEN 'dead_lettered' WHEN v.published_at IS NOT NULL THEN 'published'
            WHEN v.status = 'PROCESSING' THEN 'in_flight' ELSE {stored_state:p.} END, v.event_type, v.aggregate_type, v.aggregate_id, v.key, v.payload_bytes,
       v.content_type, v.headers{as_text}, v.schema_version, v.correlation_id, v.causation_id, v.trace_id, v.occurred_at,
       v.created_at, v.published_at, h.seconds, v.attempts, v.retry_count, v.last_error, v.last_attempt_at,
       v.next_retry_at, v.locked_by, v.locked_at, d.dead_letter_id, d.first_failed_at, d.dead_lettered_at
  FROM {event} AS v
  LEFT JOIN {history} AS h
    ON h.event_id = v.event_id AND h.id = v.id AND h.destination = v.destination AND h.published_at = v.published_at
  LEFT JOIN {dead_letter} AS d
    ON v.status = 'FAILED' AND d.event_id = v.event_id AND d.id = v.id AND d.destination = v.destination
  LEFT JOIN {message} AS p
    ON v.published_at IS NULL AND p.event_id = v.event_id AND p.destination = v.destination AND p.id = v.id
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
