-- The fragments that the statements of stores/admin/sql need of SQLite. Lists are JSON arrays, times are text.

-- fragment: now
-- The clock of the database, as every time is written.
strftime({time_format}, 'now')

-- fragment: ago
-- The time this many seconds ago; NULL for NULL.
CASE WHEN :{parameter} IS NOT NULL THEN {past:row} END

-- fragment: operator
-- The name of the operator.
:by

-- fragment: for_update
-- Nothing: a transaction that writes is the only one.

-- fragment: unindexed
-- The sign that keeps SQLite from the index of a time, which many rows may share.
+

-- fragment: as_text
-- Nothing: JSON is text.

-- fragment: as_json
-- Nothing: JSON is text.

-- fragment: json_object
-- The function that builds a JSON object.
json_object

-- fragment: json_length
-- The function that counts the elements of a JSON array.
json_array_length

-- fragment: position_of_text
-- The function that finds one text in another.
instr

-- fragment: payload_bytes
-- The payload as bytes, also where plain SQL inserted text.
CAST({row}payload AS BLOB)

-- fragment: size_of_payload
-- The bytes of the payload.
length(CAST({row}payload AS BLOB))

-- fragment: size_of_message
-- The bytes of payload and headers.
length(CAST({row}payload AS BLOB)) + length(CAST({row}headers AS BLOB))

-- fragment: among
-- Whether a number is in a list.
IN (SELECT value FROM json_each(:{parameter}))

-- fragment: among_texts
-- Whether a text is in a list.
IN (SELECT value FROM json_each(:{parameter}))

-- fragment: subjects
-- A list of texts, as rows.
(SELECT value AS subject FROM json_each(:subjects)) AS s

-- fragment: pairs
-- A list of event ids and one of destinations, as rows in their order.
(SELECT e.value AS event_id, json_extract(:destinations, '$[' || e.key || ']') AS destination, e.key AS n
   FROM json_each(:event_ids) AS e) AS p

-- fragment: deliveries
-- Rows of the history by their identities, in the order of the lists.
(SELECT e.value AS event_id, json_extract(:ids, '$[' || e.key || ']') AS id,
        json_extract(:destinations, '$[' || e.key || ']') AS destination,
        json_extract(:times, '$[' || e.key || ']') AS published_at, e.key AS n
   FROM json_each(:event_ids) AS e) AS i

-- fragment: copy_id
-- The id of the copy of delivery i.
json_extract(:copy_ids, '$[' || i.n || ']')

-- fragment: events_are_any
-- Whether a replay is not limited to a list of events.
:events IS NULL

-- fragment: is_copy
-- Whether a message is a copy that a replay made.
(json_type({row}headers, '$.replayof') IS NOT NULL)

-- fragment: headers_with_original
-- The headers of a copy: those of the original, and its id.
json_set(m.headers, '$.replayof', coalesce(json_extract(m.headers, '$.replayof'), m.event_id))

-- fragment: detail_with_fewer_remaining
-- The detail of a bulk action after :done more messages.
json_set(detail, '$.remaining', json_extract(detail, '$.remaining') - :done)

-- fragment: messages_in_flight
-- The messages that relays with a valid lease report as in flight.
SELECT DISTINCT json_extract(h.value, '$[0]') AS event_id, json_extract(h.value, '$[1]') AS destination
  FROM {relay} AS r, json_each(r.in_flight) AS h
 WHERE r.lease_until > {now}

-- fragment: breakers_of_relay
-- The breakers of relay r, as rows of destination and state.
json_each(r.breakers)

-- fragment: lease_is_valid
-- Whether a relay's lease is valid, by the elapsed time of the host. One that ends later than its length from now is from
-- before a restart of the host. A lease without an elapsed time is compared with the wall clock.
coalesce({row}lease_end > elapsed() AND {row}lease_end <= elapsed() + {row}lease_length, {row}lease_until > {now})

-- fragment: lease_left
-- The seconds left of the lease of a relay, by the elapsed time of the host where it is known.
round(CASE WHEN {lease_is_valid} THEN coalesce(lease_end - elapsed(), (julianday(lease_until) - julianday({now})) * 86400.0)
           ELSE 0.0 END, 3)

-- fragment: relay_age
-- The seconds since a relay started.
round((julianday({now}) - julianday(started_at)) * 86400.0, 3)

-- fragment: waiting_queues
-- The first :queues ordering queues with waiting messages, by hops along the index.
queue (key, destination) AS (
  SELECT * FROM (SELECT key, destination FROM {message}
                  WHERE held = 'waiting' AND key IS NOT NULL ORDER BY key, destination, id LIMIT 1)
  UNION ALL
  SELECT b.key, b.destination
    FROM queue AS l
   CROSS JOIN {message} AS b
   WHERE b.row_id = {next_waiting_queue}
   LIMIT :queues
)

-- fragment: first_of_queues
-- The message of each queue for which the others wait: one probe of the index per queue.
(SELECT m.*
   FROM queue AS l
  CROSS JOIN {message} AS m
  WHERE m.row_id = (SELECT h.row_id FROM {message} AS h
                     WHERE h.key = l.key AND h.destination = l.destination AND ({holds_queue:h.})
                     ORDER BY h.id LIMIT 1))

-- fragment: in_lane_of_first
-- Nothing: there is one lane.

-- fragment: in_lane_of_key
-- Nothing: there is one lane.

-- fragment: backlog_and_oldest
-- How many messages are pending, and since when the oldest could have been sent: the first recorded that is not delayed, the
-- first delayed one that is due, or the first that is ready. Each is searched among :most rows, and the search ends with
-- the first found: a relay asks while the backlog is large.
oldest AS MATERIALIZED (
  SELECT since, event_id
    FROM (SELECT * FROM (SELECT id, event_id, recorded_at AS since
                           FROM (SELECT id, event_id, recorded_at,
                                        {is_delayed} AS delayed
                                   FROM {message} ORDER BY recorded_at, id LIMIT :most + 1)
                          WHERE NOT delayed AND recorded_at <= {now}
                          LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT id, event_id, available_at
                           FROM (SELECT id, event_id, available_at, attempts + deferrals AS failures
                                   FROM {message}
                                  WHERE held IS NULL AND available_at IS NOT NULL AND available_at <= {now}
                                  ORDER BY available_at, id LIMIT :most + 1)
                          WHERE failures = 0
                          LIMIT 1)
          UNION ALL
          SELECT * FROM (SELECT id, event_id, recorded_at
                           FROM {message} WHERE held IS NULL AND available_at IS NULL ORDER BY id LIMIT 1))
   ORDER BY since, id
   LIMIT 1
), backlog AS (
  SELECT pending, pending <= :counted AS exact
    FROM (SELECT count(*) AS pending FROM (SELECT 1 FROM {message} LIMIT :counted + 1))
)

-- fragment: age_of_oldest
-- The seconds since the oldest pending message could have been sent.
(SELECT round((julianday({now}) - julianday(since)) * 86400.0, 3) FROM oldest)

-- fragment: waiting_since
-- Since when a message could have been sent: since it was recorded, or, if it was delayed, since it is due.
CASE WHEN {is_delayed:row} THEN {row}available_at ELSE {row}recorded_at END

-- fragment: pending_estimate
-- The estimated number of pending messages. SQLite has none.
SELECT NULL

-- fragment: delivered_estimate
-- The estimated number of delivered messages. SQLite has none.
SELECT NULL

-- fragment: recorded_so_far
-- The last number drawn for a message.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{prefix}message'), 0)

-- fragment: scan_of_history
-- The rows that a replay wants among the next :scan rows, in order, up to :most; then the last of these, if there were fewer.
-- A window would number all rows of the scan before the first is returned, which took three times as long.
WITH found AS MATERIALIZED (
  SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.size
    FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, {is_copy:m.} AS copy,
                 {scan_size} AS size
            FROM {history} AS m
           WHERE {scan_conditions} {narrowed}
           ORDER BY {scan_order}
           LIMIT :scan) AS m
   WHERE {replay_wanted}
   LIMIT :most
)
SELECT found.*, true AS wanted, false AS edge FROM found
UNION ALL
SELECT * FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, 0, false, true
                 FROM {history} AS m
                WHERE {scan_conditions} {narrowed}
                ORDER BY {scan_order}
                LIMIT (SELECT count(*) < :most FROM found) OFFSET :scan - 1)

-- fragment: recent_statistics
-- The latest statistics of consumer k.
{inbox_statistics} AS t ON t.consumer = k.consumer AND t.hour > {ago:lately}

-- fragment: materialized
-- The keyword that lets a part of a statement be computed once.
MATERIALIZED

-- fragment: text_type
-- The type of texts.
text

-- fragment: time_type
-- The type of times.
timestamptz

-- fragment: integer_type
-- The type of whole numbers.
integer

-- fragment: bigint_type
-- The type of large whole numbers.
bigint

-- fragment: float_type
-- The type of fractions.
double precision

-- fragment: is_ready
-- Whether a message can be sent now.
{row}held IS NULL AND {row}available_at IS NULL

-- fragment: is_waiting
-- Whether a message waits for an earlier one of its key.
{row}held = 'waiting'

-- fragment: order_ready
-- Messages that are ready, in the order of their index.
ORDER BY {row}id

-- fragment: order_delayed
-- Delayed events, in the order of their index.
ORDER BY {row}key, {row}available_at

-- fragment: order_waiting
-- Waiting messages, in the order of their index.
ORDER BY {row}key, {row}destination, {row}id

-- fragment: order_parked
-- Parked messages, in the order of their index.
ORDER BY {row}destination, {row}id

-- fragment: order_holding
-- Messages that hold their queues back, in the order of their index.
ORDER BY {row}key, {row}destination, {row}id

-- fragment: order_due
-- Retries and delayed events, in the order of their index.
ORDER BY {row}available_at, {row}id

-- fragment: is_scheduled
-- Whether a message is a retry or a delayed event. Word for word the predicate of the partial index.
{row}held IS NULL AND {row}available_at IS NOT NULL

-- fragment: rows_retrying
-- The retries: their index has other messages, too.
{rows_retrying_of_two}

-- fragment: retrying_complete
-- Whether all retries were found.
{complete_of_two}

-- fragment: is_parked
-- Whether a message waits for its destination to become available.
{row}held = 'parked'

-- fragment: is_blocked
-- Whether a message blocks its key until an operator decides.
{row}held = 'blocked'

-- fragment: holds_queue
-- Whether a message holds its ordering queue back. Word for word the predicate of the partial index: the planner compares them.
{row}held IN ('parked', 'blocked')
OR ({row}held IS NULL AND {row}available_at IS NOT NULL AND {row}attempts + {row}deferrals > 0)

-- fragment: is_delayed
-- Whether a message was recorded with a delay and not sent yet. Word for word the predicate of the partial index.
{row}held IS NULL AND {row}available_at IS NOT NULL AND {row}attempts + {row}deferrals = 0

-- fragment: at_or_after
-- From position (time, :id) on; the parameter with the time is named like the column.
(m.{parameter}, m.id) >= (:{parameter}, :id)

-- fragment: at_or_before
-- From position (time, :id) back; the parameter with the time is named like the column.
(m.{parameter}, m.id) <= (:{parameter}, :id)

-- fragment: beyond_position
-- After position (:recorded_at, :id).
(m.recorded_at, m.id) > (:recorded_at, :id)

-- fragment: insert_new
-- The INSERT that skips rows which exist; see skip_existing.
INSERT

-- fragment: skip_existing
-- Skip rows that exist already.
ON CONFLICT DO NOTHING

-- fragment: with_pairs
-- Nothing: the pairs of an UPDATE come after its assignments.

-- fragment: from_pairs
-- The pairs of an UPDATE.
FROM {pairs}

-- fragment: as_old
-- The name of the row that exists already.
AS d

-- fragment: on_same_destination
-- What to assign where the destination exists already.
ON CONFLICT (destination) DO UPDATE SET

-- fragment: new
-- A value that was to be inserted.
excluded.{parameter}

-- fragment: old
-- A value of the row that exists already.
d.{parameter}

-- fragment: delete_deliveries
-- Delete rows of the history by their identities.
DELETE FROM {history}
 WHERE (event_id, id, destination, {unindexed}published_at)
    IN (SELECT i.event_id, i.id, i.destination, i.published_at FROM {deliveries})
RETURNING event_id

-- fragment: waiting_for_first
-- How many messages wait for a message of their key.
{waiting_by_subquery:row}

-- fragment: consumer_names
-- The names of consumers.
{consumers_by_hops}

-- fragment: inbox_records
-- How many inbox records consumer c has.
{records_up_to_most}
