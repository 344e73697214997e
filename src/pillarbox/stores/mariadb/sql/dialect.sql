-- The fragments that the statements of stores/admin/sql need of MariaDB. `:ids` is a list as JSON, `:ids_in` the same as (1, 2, 3),
-- and `:ids_and_destinations` rows of both.

-- fragment: now
-- The clock of the database, in UTC.
utc_timestamp(6)

-- fragment: ago
-- The time this many seconds ago; NULL for NULL.
({now} - INTERVAL round(:{parameter} * 1000000) MICROSECOND)

-- fragment: operator
-- The name of the operator; the database user if the operator gave none.
coalesce(nullif(:by, ''), current_user())

-- fragment: for_update
-- Lock the rows that a statement reads.
FOR UPDATE

-- fragment: unindexed
-- Nothing: statistics tell MariaDB which index is the best.

-- fragment: as_text
-- Nothing: JSON is text.

-- fragment: as_json
-- Nothing: JSON is text.

-- fragment: json_object
-- The function that builds a JSON object.
json_object

-- fragment: json_length
-- The function that counts the elements of a JSON array.
json_length

-- fragment: position_of_text
-- The function that finds one text in another.
instr

-- fragment: payload_bytes
-- The payload as bytes.
{row}payload

-- fragment: size_of_payload
-- The bytes of the payload.
octet_length({row}payload)

-- fragment: size_of_message
-- The bytes of payload and headers.
octet_length({row}payload) + octet_length({row}headers)

-- fragment: among
-- Whether a number is in a list.
IN :{parameter}_in

-- fragment: among_texts
-- Whether a text is in a list.
IN :{parameter}_in

-- fragment: subjects
-- A list of texts, as rows.
JSON_TABLE(:subjects, '$[*]' COLUMNS (subject TEXT {bytewise} PATH '$')) AS s

-- fragment: pairs
-- A list of event ids and one of destinations, as rows in their order.
JSON_TABLE(:event_ids_and_destinations, '$[*]' COLUMNS (n FOR ORDINALITY, event_id VARCHAR(200) {bytewise} PATH '$[0]',
  destination VARCHAR(255) {bytewise} PATH '$[1]')) AS p

-- fragment: deliveries
-- Rows of the history by their identities, in the order of the lists, and the ids of their copies.
JSON_TABLE(:event_ids_and_ids_and_destinations_and_times_and_copy_ids, '$[*]' COLUMNS (n FOR ORDINALITY,
  event_id VARCHAR(200) {bytewise} PATH '$[0]', id BIGINT PATH '$[1]', destination VARCHAR(255) {bytewise} PATH '$[2]',
  published_at DATETIME(6) PATH '$[3]', copy_id VARCHAR(200) {bytewise} PATH '$[4]')) AS i

-- fragment: copy_id
-- The id of the copy of delivery i.
i.copy_id

-- fragment: events_are_any
-- Whether a replay is not limited to a list of events.
:events IS NULL

-- fragment: is_copy
-- Whether a message is a copy that a replay made.
json_exists({row}headers, '$.replayof')

-- fragment: headers_with_original
-- The headers of a copy: those of the original, and its id.
json_set(m.headers, '$.replayof', coalesce(json_value(m.headers, '$.replayof'), m.event_id))

-- fragment: detail_with_fewer_remaining
-- The detail of a bulk action after :done more messages.
json_set(detail, '$.remaining', CAST(json_value(detail, '$.remaining') AS SIGNED) - :done)

-- fragment: messages_in_flight
-- The messages that relays with a valid lease report as in flight.
SELECT DISTINCT x.event_id, x.destination
  FROM {relay} AS r, JSON_TABLE(r.in_flight, '$[*]' COLUMNS (event_id VARCHAR(200) {bytewise} PATH '$[0]',
         destination VARCHAR(255) {bytewise} PATH '$[1]')) AS x
 WHERE {lease_is_valid:r.}

-- fragment: breakers_of_relay
-- The breakers of relay r, as rows of destination and state.
JSON_TABLE(r.breaker_states, '$[*]' COLUMNS ("key" VARCHAR(255) {bytewise} PATH '$[0]', value VARCHAR(20) {bytewise} PATH '$[1]'))

-- fragment: lease_is_valid
-- Whether the lease of a relay is valid.
{row}lease_until > {now}

-- fragment: lease_left
-- The seconds left of the lease of a relay; negative once it has ended.
CAST(timestampdiff(MICROSECOND, {now}, lease_until) / 1000000 AS DOUBLE)

-- fragment: relay_age
-- The seconds since a relay started.
CAST(timestampdiff(MICROSECOND, started_at, {now}) / 1000000 AS DOUBLE)

-- fragment: waiting_queues
-- The first :queues ordering queues with waiting messages, along the index.
queue AS (
  SELECT w.lane, w."key", w.destination FROM {message} AS w FORCE INDEX (queue_idx)
   WHERE w.state = 3
   GROUP BY w.lane, w."key", w.destination
   ORDER BY w.lane, w."key", w.destination
   LIMIT :queues
)

-- fragment: first_of_queues
-- The message of each queue for which the others wait: one probe of the index per queue and state.
-- with: probe=first between=, these=of_waiting_queue
(SELECT f.* FROM (
   SELECT q.destination, least({each_holding}) AS id FROM queue AS q) AS o
 STRAIGHT_JOIN {message} AS f ON f.id = o.id AND f.destination = o.destination)

-- fragment: of_waiting_queue
-- The messages of ordering queue q.
{message} AS h FORCE INDEX (queue_idx) WHERE h.lane = q.lane AND h."key" = q."key" AND h.destination = q.destination

-- fragment: in_lane_of_first
-- In the lane of the first message, with which the indexes begin.
b.lane = {row}lane AND

-- fragment: in_lane_of_key
-- In the lane of :key, with which the indexes begin.
{row}lane = (crc32(:key) & {lane_mask}) AND

-- fragment: backlog_and_oldest
-- How many messages are pending, and since when the oldest could have been sent: among the first recorded, else the first that is
-- ready; a delayed message ages once it is due. Beyond :counted messages it is the server's estimate.
first_recorded AS (
  SELECT id, event_id, CASE WHEN {is_delayed} THEN available_at ELSE recorded_at END AS since
    FROM {message} FORCE INDEX (recorded_idx) ORDER BY recorded_at, id LIMIT :beyond
), oldest AS (
  SELECT since, event_id FROM (
    SELECT id, event_id, since FROM first_recorded WHERE since <= {now}
    UNION ALL
    SELECT * FROM (SELECT x.id, x.event_id, x.recorded_at FROM {message} AS x FORCE INDEX (state_recorded_idx)
                    WHERE x.state = 0 AND x.recorded_at <= {now} ORDER BY x.recorded_at, x.id LIMIT 1) AS ready
  ) AS due ORDER BY since, id LIMIT 1
), counted AS (
  SELECT count(*) AS pending FROM (SELECT 1 FROM {message} LIMIT :one_beyond_counted) AS w
), backlog AS (
  SELECT CASE WHEN c.pending <= :counted THEN c.pending
              ELSE greatest(c.pending, coalesce((SELECT t.table_rows FROM information_schema.tables AS t
                                                  WHERE t.table_schema = database() AND t.table_name = '{prefix}message'), 0)) END AS pending,
         c.pending <= :counted AS exact
    FROM counted AS c
)

-- fragment: age_of_oldest
-- The seconds since the oldest pending message could have been sent.
CAST(timestampdiff(MICROSECOND, (SELECT since FROM oldest), {now}) / 1000000 AS DOUBLE)

-- fragment: waiting_since
-- Since when a message could have been sent: since it was recorded, or, if it was delayed, since it is due.
CASE WHEN {is_delayed:row} THEN {row}available_at ELSE {row}recorded_at END

-- fragment: pending_estimate
-- The estimated number of pending messages.
SELECT t.table_rows FROM information_schema.tables AS t
 WHERE t.table_schema = database() AND t.table_name = '{prefix}message'

-- fragment: delivered_estimate
-- The estimated number of delivered messages.
SELECT t.table_rows FROM information_schema.tables AS t
 WHERE t.table_schema = database() AND t.table_name = '{prefix}history'

-- fragment: recorded_so_far
-- The last number drawn for a message.
SELECT coalesce(t.auto_increment, 1) - 1 FROM information_schema.tables AS t
 WHERE t.table_schema = database() AND t.table_name = '{prefix}message'

-- fragment: scan_of_history
-- The rows that a replay wants among the next :scan rows, in order, up to :most; then the last of these. The scan is a table of its
-- own, whose rows are compared one by one until there are enough: a window would number all of them first.
SELECT m.* FROM (
  SELECT f.*, true AS wanted, false AS edge
    FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.size
            FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.event_type, m."key",
                         {is_copy:m.} AS copy, {scan_size} AS size
                    FROM {history} AS m
                   WHERE {scan_conditions} {narrowed}
                   ORDER BY {scan_order}
                   LIMIT :scan) AS m
           WHERE {replay_wanted}
           LIMIT :most) AS f
  UNION ALL
  SELECT e.*, 0, false, true
    FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id
            FROM {history} AS m
           WHERE {scan_conditions} {narrowed}
           ORDER BY {scan_order}
           LIMIT 1 OFFSET :before_edge) AS e
) AS m
ORDER BY {scan_order}, m.edge
LIMIT 1000000000

-- fragment: recent_statistics
-- The latest statistics of consumer k.
{inbox_statistics} AS t ON t.consumer = k.consumer AND t.hour > {ago:lately}

-- fragment: materialized
-- Nothing: MariaDB computes a part with a limit once.

-- fragment: text_type
-- The type of texts.
char

-- fragment: time_type
-- The type of times.
datetime(6)

-- fragment: integer_type
-- The type of whole numbers.
signed

-- fragment: bigint_type
-- The type of large whole numbers.
signed

-- fragment: float_type
-- The type of fractions.
double

-- fragment: is_ready
-- Whether a message can be sent now.
{row}state = 0 AND {row}available_at IS NULL

-- fragment: is_waiting
-- Whether a message waits for an earlier one of its key.
{row}state = 3

-- fragment: order_ready
-- Nothing: MariaDB finds the index by the state.

-- fragment: order_delayed
-- Nothing: MariaDB finds the index by the state.

-- fragment: order_waiting
-- Nothing: MariaDB finds the index by the state.

-- fragment: order_parked
-- Nothing: MariaDB finds the index by the state.

-- fragment: order_holding
-- Nothing: MariaDB finds the index by the state.

-- fragment: order_due
-- Nothing: MariaDB finds the index by the state.

-- fragment: is_scheduled
-- Whether a message is a retry or a delayed event.
{row}state IN (1, 2)

-- fragment: rows_retrying
-- The retries up to a limit, along the index of the states.
(SELECT {state_columns:p.} FROM {message} AS p WHERE p.state = 2 LIMIT :beyond)

-- fragment: retrying_complete
-- Whether there are fewer retries than the limit.
((SELECT count(*) FROM (SELECT 1 FROM {message} AS m WHERE m.state = 2 LIMIT :beyond) AS limited) < :beyond)

-- fragment: is_parked
-- Whether a message waits for its destination to become available.
{row}state = 4

-- fragment: is_blocked
-- Whether a message blocks its key until an operator decides.
{row}state = 5

-- fragment: holds_queue
-- Whether a message holds its ordering queue back.
-- with: probe=number_of_state between=,
{row}state IN ({each_holding})

-- fragment: number_of_state
-- The number of a state.
{parameter}

-- fragment: is_delayed
-- Whether a message was recorded with a delay and not sent yet.
{row}state = 1

-- fragment: at_or_after
-- From position (time, :id) on. MariaDB finds no range in a comparison of rows.
(m.{parameter} > :{parameter} OR (m.{parameter} = :{parameter} AND m.id >= :id))

-- fragment: at_or_before
-- From position (time, :id) back.
(m.{parameter} < :{parameter} OR (m.{parameter} = :{parameter} AND m.id <= :id))

-- fragment: beyond_position
-- After position (:recorded_at, :id).
(m.recorded_at > :recorded_at OR (m.recorded_at = :recorded_at AND m.id > :id))

-- fragment: insert_new
-- The INSERT that skips rows which exist. What it copies was accepted before, so that it skips nothing else.
INSERT IGNORE

-- fragment: skip_existing
-- Nothing: see insert_new.

-- fragment: with_pairs
-- The pairs of an UPDATE.
JOIN {pairs}

-- fragment: from_pairs
-- Nothing: the pairs of an UPDATE come before its assignments.

-- fragment: as_old
-- Nothing: the row that exists already has no name of its own.

-- fragment: on_same_destination
-- What to assign where the destination exists already.
ON DUPLICATE KEY UPDATE

-- fragment: new
-- A value that was to be inserted.
VALUES({parameter})

-- fragment: old
-- A value of the row that exists already.
{parameter}

-- fragment: delete_deliveries
-- Delete rows of the history by their identities.
DELETE h FROM {deliveries}
 STRAIGHT_JOIN {history} AS h ON h.published_at = i.published_at AND h.id = i.id AND h.destination = i.destination AND h.event_id = i.event_id

-- fragment: waiting_for_first
-- How many messages wait for a message of their key, up to one more than :most: those that are held back, and later ones that have
-- no route yet. A subquery cannot limit what it counts: whether there are too many is asked first.
least(:beyond,
  CASE WHEN (SELECT 1 FROM {of_first:row} AND b.state = 3 LIMIT 1 OFFSET :most) IS NOT NULL THEN :beyond
       ELSE (SELECT count(*) FROM {of_first:row} AND b.state = 3 AND b.destination IN ({row}destination, ''))
          + (SELECT count(*) FROM {of_first:row} AND {holds_queue:b.} AND b.destination = '' AND b.id > {row}id) END)

-- fragment: of_first
-- The messages of the key of a first message.
{message} AS b FORCE INDEX (queue_idx) WHERE b.lane = {row}lane AND b."key" = {row}"key"

-- fragment: consumer_names
-- The names of consumers: along the indexes.
named AS (
  SELECT consumer FROM (SELECT consumer FROM {inbox} GROUP BY consumer
                        UNION
                        SELECT consumer FROM {inbox_statistics} GROUP BY consumer) AS known_names
   ORDER BY consumer LIMIT :limit
)

-- fragment: inbox_records
-- How many inbox records consumer c has, up to :most.
CASE WHEN (SELECT 1 FROM {inbox} AS r WHERE r.consumer = c.consumer LIMIT 1 OFFSET :most) IS NOT NULL THEN :most
     ELSE (SELECT count(*) FROM {inbox} AS r WHERE r.consumer = c.consumer) END
