-- name: overview
-- Count pending messages, dead letters and blocked keys, each up to a limit, and find the oldest pending message. Indexes and
-- estimates of pending messages differ so much that each engine has its own search.
WITH {backlog_and_oldest}
SELECT b.pending, {age_of_oldest}, b.exact,
       (SELECT count(*) FROM (SELECT 1 FROM {dead_letter} LIMIT :beyond) AS dead),
       (SELECT count(*)
          FROM (SELECT 1 FROM {message} WHERE {is_blocked} ORDER BY recorded_at, id LIMIT :beyond) AS held),
       (SELECT event_id FROM oldest),
       ({recorded_so_far})
  FROM backlog AS b

-- name: count_states
-- Count the pending messages of each state, the dead letters and the delivered messages, each up to a limit along an index. Beyond
-- the limit the database estimates how many were delivered.
-- with: state_columns=counted_pending
SELECT (SELECT count(*) FROM (SELECT 1 FROM {message} AS m WHERE {is_ready:m.} {order_ready:m.} LIMIT :beyond) AS of_ready),
       (SELECT count(*) FROM {rows_retrying} AS of_retrying),
       (SELECT count(*) FROM (SELECT 1 FROM {message} AS m WHERE {is_delayed:m.} {order_delayed:m.} LIMIT :beyond) AS of_delayed),
       (SELECT count(*) FROM (SELECT 1 FROM {message} AS m WHERE {is_waiting:m.} {order_waiting:m.} LIMIT :beyond) AS of_waiting),
       (SELECT count(*) FROM (SELECT 1 FROM {message} AS m WHERE {is_parked:m.} {order_parked:m.} LIMIT :beyond) AS of_parked),
       (SELECT count(*)
          FROM (SELECT 1 FROM {message} AS m WHERE {is_blocked:m.} ORDER BY m.recorded_at, m.id LIMIT :beyond) AS of_blocked),
       {retrying_complete},
       (SELECT count(*) FROM (SELECT 1 FROM {dead_letter} LIMIT :beyond) AS of_dead),
       (SELECT count(*) FROM (SELECT 1 FROM {history} LIMIT :beyond) AS delivered),
       ({pending_estimate}),
       ({delivered_estimate})

-- fragment: counted_pending
-- The columns by which pending messages are told apart and counted.
{row}id, {row}destination, {row}held, {row}attempts, {row}deferrals

-- name: count_state
-- Count the pending messages of one state up to a limit, along its index, and tell whether these are all.
-- with: state_columns=counted_pending pending_rows=rows_in_state in_state=is_ready state_order=order_ready complete=below_limit
-- variant retrying: pending_rows=rows_retrying complete=retrying_complete
-- variant delayed: in_state=is_delayed state_order=order_delayed
-- variant waiting: in_state=is_waiting state_order=order_waiting
-- variant parked: in_state=is_parked state_order=order_parked
SELECT count(*), {complete} FROM {pending_rows} AS counted

-- fragment: below_limit
-- Whether fewer messages were counted than the limit.
count(*) < :beyond

-- name: count_in_flight
-- Count the messages that relays have in flight, by the state of their rows.
WITH in_flight AS {materialized} (
  {messages_in_flight}
)
SELECT {stored_state:m.} AS state, count(*)
  FROM in_flight AS f
  JOIN {message} AS m ON m.event_id = f.event_id AND m.destination = f.destination
 GROUP BY 1

-- name: pending_by_destination
-- Group the :half messages that were recorded first and the :half that were recorded last by destination and state; those without
-- a route also by type.
WITH scanned AS {materialized} (
  SELECT * FROM (SELECT {grouped:m.} FROM {message} AS m ORDER BY m.recorded_at, m.id LIMIT :half) AS first_recorded
  UNION
  SELECT * FROM (SELECT {grouped:m.} FROM {message} AS m ORDER BY m.recorded_at DESC, m.id DESC LIMIT :half) AS last_recorded
)
SELECT destination, unrouted_type, unrouted_aggregate, event_state, count(*), min(CASE WHEN since <= {now} THEN since END),
       sum(recent), min(CASE WHEN recent = 1 AND since <= {now} THEN since END), {now}
  FROM scanned
 GROUP BY destination, unrouted_type, unrouted_aggregate, event_state

-- fragment: grouped
-- What groups a pending message.
{row}id, {row}destination, CASE WHEN {row}destination = '' THEN {row}event_type ELSE '' END AS unrouted_type,
CASE WHEN {row}destination = '' THEN {row}aggregate_type END AS unrouted_aggregate, {stored_state:row} AS event_state,
{waiting_since:row} AS since, CASE WHEN {row}recorded_at >= {ago:seconds} THEN 1 ELSE 0 END AS recent

-- name: recent_deliveries
-- Group the delivered messages that were recorded in the last :seconds by destination, the last :half of them.
SELECT destination, count(*), min(recorded_at), {now}
  FROM (SELECT m.destination, m.recorded_at FROM {history} AS m
         WHERE m.recorded_at >= {ago:seconds}
         ORDER BY m.recorded_at DESC, m.id DESC
         LIMIT :half) AS recent
 GROUP BY destination

-- name: override_changes
-- Read who changed the overrides that are in force, and when.
SELECT destination, changed_by, changed_at
  FROM {destination}
 WHERE changed_by IS NOT NULL AND (paused OR breaker IS NOT NULL OR rate_limit IS NOT NULL)
 ORDER BY destination

-- name: statistics_since
-- Read the samples of the last :seconds, the newest first, up to a limit.
SELECT at, relay, destination, statistics{as_text} FROM {sample} WHERE at >= {ago:seconds} ORDER BY at DESC LIMIT :most

-- name: overview_lanes
-- List every lane and its owner.
SELECT lane, owner, epoch, crashes FROM {lane} ORDER BY lane

-- name: overview_relays
-- List every relay: the time left of its lease, its breakers, its age, what has been in flight for long.
SELECT id, name, host, {lease_left}, breakers{as_text}, version, {relay_age}, {json_length}(in_flight),
       drain_requested_by IS NOT NULL, stalled
  FROM {relay}
 ORDER BY id

-- name: list_consumers
-- List the consumers that have inbox records or statistics, by name: their records, counted up to a limit, and their latest
-- statistics.
WITH RECURSIVE {consumer_names}, known AS (
  SELECT consumer FROM named WHERE consumer IS NOT NULL LIMIT :limit
)
SELECT c.consumer,
       {inbox_records},
       CAST(sum(c.processed) AS {bigint_type}), CAST(sum(c.duplicates) AS {bigint_type}), CAST(sum(c.failures) AS {bigint_type}),
       CAST(sum(c.dead_lettered) AS {bigint_type}), max(CASE WHEN c.latest = 1 THEN c.last_error END), max(c.last_failed_at)
  FROM (SELECT k.consumer, t.processed, t.duplicates, t.failures, t.dead_lettered, t.last_error, t.last_failed_at,
               row_number() OVER (PARTITION BY k.consumer ORDER BY t.last_failed_at IS NULL, t.last_failed_at DESC) AS latest
          FROM known AS k
          LEFT JOIN {recent_statistics}) AS c
 GROUP BY c.consumer
 ORDER BY c.consumer

-- fragment: consumers_by_hops
-- The names of consumers: one hop along the indexes per name.
named AS (
  SELECT min(consumer) AS consumer
    FROM (SELECT min(consumer) AS consumer FROM {inbox} UNION ALL SELECT min(consumer) FROM {inbox_statistics}) AS first
  UNION ALL
  SELECT (SELECT min(consumer)
            FROM (SELECT min(r.consumer) AS consumer FROM {inbox} AS r WHERE r.consumer > n.consumer
                  UNION ALL
                  SELECT min(t.consumer) FROM {inbox_statistics} AS t WHERE t.consumer > n.consumer) AS next)
    FROM named AS n WHERE n.consumer IS NOT NULL
)

-- fragment: records_up_to_most
-- The inbox records of consumer c, up to :most. They are counted in the order of their index, because PostgreSQL would otherwise
-- search the table for a rare consumer.
(SELECT count(*) FROM (SELECT 1 FROM {inbox} AS r WHERE r.consumer = c.consumer ORDER BY r.event_id LIMIT :most) AS counted)
