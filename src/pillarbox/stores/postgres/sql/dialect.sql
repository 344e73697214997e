-- The fragments that the statements of stores/admin/sql need of PostgreSQL.

-- fragment: now
-- The clock of the database.
now()

-- fragment: ago
-- The time this many seconds ago; NULL for NULL.
now() - :{parameter}::double precision * interval '1 second'

-- fragment: operator
-- The name of the operator; the database user if the operator gave none.
coalesce(nullif(:by, ''), current_user)

-- fragment: for_update
-- Lock the rows that a statement reads.
FOR UPDATE

-- fragment: unindexed
-- Nothing: statistics tell PostgreSQL which index is the best.

-- fragment: as_text
-- A JSON column as text.
::text

-- fragment: as_json
-- A text parameter as JSON.
::jsonb

-- fragment: json_object
-- The function that builds a JSON object.
jsonb_build_object

-- fragment: json_length
-- The function that counts the elements of a JSON array.
jsonb_array_length

-- fragment: position_of_text
-- The function that finds one text in another.
strpos

-- fragment: payload_bytes
-- The payload as bytes.
{row}payload

-- fragment: size_of_payload
-- The bytes of the payload.
octet_length({row}payload)

-- fragment: size_of_message
-- The bytes of payload and headers.
octet_length({row}payload) + octet_length({row}headers::text)

-- fragment: among
-- Whether a number is in a list.
= ANY (:{parameter}::bigint[])

-- fragment: among_texts
-- Whether a text is in a list.
= ANY (:{parameter}::text[])

-- fragment: subjects
-- A list of texts, as rows.
unnest(:subjects::text[]) AS s(subject)

-- fragment: pairs
-- A list of event ids and one of destinations, as rows in their order.
unnest(:event_ids::text[], :destinations::text[]) WITH ORDINALITY AS p(event_id, destination, n)

-- fragment: deliveries
-- Rows of the history by their identities, in the order of the lists.
unnest(:event_ids::text[], :ids::bigint[], :destinations::text[], :times::timestamptz[])
  WITH ORDINALITY AS i(event_id, id, destination, published_at, n)

-- fragment: copy_id
-- The id of the copy of delivery i.
(:copy_ids::text[])[i.n]

-- fragment: events_are_any
-- Whether a replay is not limited to a list of events.
:events::text[] IS NULL

-- fragment: is_copy
-- Whether a message is a copy that a replay made.
{row}headers ? 'replayof'

-- fragment: headers_with_original
-- The headers of a copy: those of the original, and its id.
m.headers || jsonb_build_object('replayof', coalesce(m.headers->>'replayof', m.event_id))

-- fragment: detail_with_fewer_remaining
-- The detail of a bulk action after :done more messages.
detail || jsonb_build_object('remaining', (detail->>'remaining')::bigint - CAST(:done AS integer))

-- fragment: messages_in_flight
-- The messages that relays with a valid lease report as in flight.
SELECT DISTINCT x.event_id, x.destination
  FROM {relay} AS r, jsonb_to_recordset(r.in_flight) AS x(event_id text, destination text)
 WHERE {lease_is_valid:r.}

-- fragment: breakers_of_relay
-- The breakers of relay r, as rows of destination and state.
jsonb_each_text(r.breakers)

-- fragment: lease_is_valid
-- Whether the lease of a relay is valid.
{row}lease_until > now()

-- fragment: lease_left
-- The seconds left of the lease of a relay; negative once it has ended.
extract(epoch FROM lease_until - now())::float8

-- fragment: relay_age
-- The seconds since a relay started.
extract(epoch FROM now() - started_at)::float8

-- fragment: waiting_queues
-- The first :queues ordering queues with waiting messages, by hops along the index, which begins with the lane.
hop AS (
  (SELECT h.lane, h.key, h.destination FROM {message} AS h
    WHERE h.held = 'waiting' ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1)
  UNION ALL
  SELECT f.lane, f.key, f.destination FROM hop CROSS JOIN LATERAL (
    SELECT h.lane, h.key, h.destination FROM {message} AS h
     WHERE h.held = 'waiting' AND (h.lane, h.key, h.destination) > (hop.lane, hop.key, hop.destination)
     ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1) AS f
), queue AS MATERIALIZED (SELECT * FROM hop LIMIT :queues)

-- fragment: first_of_queues
-- The message of each queue for which the others wait: one probe of the index per queue.
(SELECT f.* FROM queue AS q CROSS JOIN LATERAL (
   SELECT h.lane, h.id, h.key, h.destination, h.event_id, h.event_type, h.last_error, h.held, h.available_at, h.first_failed_at,
          h.recorded_at
     FROM {message} AS h
    WHERE h.lane = q.lane AND h.key = q.key AND h.destination = q.destination AND ({holds_queue:h.})
    ORDER BY h.id LIMIT 1) AS f)

-- fragment: in_lane_of_first
-- In the lane of the first message, with which the indexes begin.
b.lane = {row}lane AND

-- fragment: in_lane_of_key
-- In the lane of :key, with which the indexes begin.
{row}lane = (hashtext(:key) & {lane_mask})::smallint AND

-- fragment: backlog_and_oldest
-- How many messages are pending, and since when the oldest could have been sent: among the first recorded, else the first of
-- each lane; a delayed message ages once it is due. Beyond :counted messages it is the server's own count or estimate.
first AS MATERIALIZED (
  SELECT id, event_id,
         {clamp_time}(CASE WHEN {is_delayed} THEN available_at
                           ELSE recorded_at END) AS since
    FROM {message} ORDER BY recorded_at, id LIMIT :most::int + 1
), scanned AS MATERIALIZED (
  SELECT count(*) AS pending, count(*) <= :most::int AS complete FROM first
), oldest AS MATERIALIZED (
  SELECT since, event_id FROM (
    SELECT id, event_id, since FROM first WHERE since <= now()
    UNION ALL
    SELECT ready.id, ready.event_id, ready.recorded_at
      FROM {lane} AS n CROSS JOIN LATERAL (
        SELECT x.id, x.event_id, {clamp_time}(x.recorded_at) AS recorded_at FROM {message} AS x
         WHERE x.lane = n.lane AND x.held IS NULL AND x.available_at IS NULL ORDER BY x.id LIMIT 1) AS ready
     WHERE NOT (SELECT complete FROM scanned)
  ) AS due ORDER BY since, id LIMIT 1
), counted AS MATERIALIZED (
  SELECT CASE WHEN s.complete OR :counted::bigint <= :most::int THEN s.pending
              ELSE (SELECT count(*) FROM (SELECT FROM {message} LIMIT :counted::bigint + 1) AS w) END AS pending
    FROM scanned AS s
), backlog AS (
  SELECT CASE WHEN c.pending <= :counted::bigint THEN c.pending
              ELSE greatest(c.pending, coalesce(nullif(pg_stat_get_live_tuples('{message}'::regclass), 0), (
                SELECT reltuples::bigint FROM pg_class WHERE oid = '{message}'::regclass))) END AS pending,
         c.pending <= :counted::bigint AS exact
    FROM counted AS c
)

-- fragment: age_of_oldest
-- The seconds since the oldest pending message could have been sent.
extract(epoch FROM now() - (SELECT since FROM oldest))::float8

-- fragment: waiting_since
-- Since when a message could have been sent: since it was recorded, or, if it was delayed, since it is due.
{clamp_time}(CASE WHEN {is_delayed:row} THEN {row}available_at ELSE {row}recorded_at END)

-- fragment: pending_estimate
-- The estimated number of pending messages.
SELECT greatest(coalesce(nullif(pg_stat_get_live_tuples('{message}'::regclass), 0),
                  (SELECT reltuples::bigint FROM pg_class WHERE oid = '{message}'::regclass)), 0)

-- fragment: delivered_estimate
-- The estimated number of delivered messages.
SELECT coalesce(sum(greatest(coalesce(nullif(pg_stat_get_live_tuples(c.oid), 0), c.reltuples::bigint), 0)), 0)::bigint
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = '{history}'::regclass

-- fragment: recorded_so_far
-- The last number drawn for a message, from its sequence: this reads no table. A role without the right to see it gets 0.
SELECT coalesce(CASE WHEN has_sequence_privilege(s.name, 'SELECT') THEN pg_sequence_last_value(s.name::regclass) END, 0)
  FROM (SELECT pg_get_serial_sequence('{message}', 'id') AS name) AS s

-- fragment: scan_of_history
-- The rows that a replay wants among the next :scan rows, in order, and the last of these, up to :most: one scan of the index,
-- which the limit ends early, because PostgreSQL knows that the rows are still sorted.
SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.size, m.wanted, m.edge
  FROM (SELECT m.*, {replay_wanted} AS wanted, m.n = :scan AS edge
          FROM (SELECT m.*, row_number() OVER (ORDER BY {scan_order}) AS n
                  FROM (SELECT m.recorded_at, m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key,
                               {is_copy:m.} AS copy, {scan_size} AS size
                          FROM {history} AS m
                         WHERE {scan_conditions} {narrowed}
                         ORDER BY {scan_order}
                         LIMIT :scan) AS m) AS m) AS m
 WHERE m.wanted OR m.edge
 ORDER BY {scan_order}
 LIMIT :most

-- fragment: recent_statistics
-- The latest statistics of consumer k. Materialized, they are searched consumer by consumer; a join might read all consumers.
LATERAL (WITH recent AS MATERIALIZED (
           SELECT t.* FROM {inbox_statistics} AS t WHERE t.consumer = k.consumer AND t.hour > {ago:lately})
         SELECT * FROM recent) AS t ON true

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
ORDER BY {row}lane, {row}id

-- fragment: order_delayed
-- Nothing: PostgreSQL expects few delayed events, whatever there are, and would sort them instead of stopping at the limit.

-- fragment: order_waiting
-- Waiting messages, in the order of their index.
ORDER BY {row}lane, {row}key, {row}destination, {row}id

-- fragment: order_parked
-- Parked messages, in the order of their index.
ORDER BY {row}lane, {row}destination, {row}id

-- fragment: order_holding
-- Messages that hold their queues back, in the order of their index.
ORDER BY {row}lane, {row}key, {row}destination, {row}id

-- fragment: order_due
-- Retries and delayed events, in the order of their index.
ORDER BY {row}lane, {row}available_at

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
