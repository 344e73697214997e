-- A fetch picks rows lane by lane, each by a SELECT with its own limit: MariaDB has no LATERAL. `pillarbox.stores.mariadb.messages`
-- joins the parts with `add_part` between them, and fills {picked}, the numbers of lanes and the messages in flight.

-- name: add_part
-- Add the rows of the next part.
UNION ALL

-- name: fetch
-- Fetch the picked messages within a sum of bytes: what fits, and the first that does not, without its content.
-- variant checked: must_wait=checked_order
-- with: must_wait=false
-- example: picked=pick_ready own_lanes=7
SELECT {columns}, {must_wait} AS must_wait
  FROM (SELECT p.*, sum(p.size) OVER (w ROWS UNBOUNDED PRECEDING) AS bytes, row_number() OVER w AS number
          FROM ({picked} LIMIT :limit) AS p
        WINDOW w AS (ORDER BY p.n, p.sort_key, p.id)) AS p
 STRAIGHT_JOIN {message} AS m ON m.id = p.id AND m.destination = p.destination
 WHERE p.bytes - p.size <= :bytes OR p.number = 2
 ORDER BY p.number

-- name: pick_ready
-- Pick the rows of events that are ready in one lane, in order.
-- variant in_range: in_range=in_range
-- example: n=0 number=7 not_in_flight=skip_in_flight
(SELECT {n} AS n, y.id AS sort_key, y.id, y.destination, y.size
   FROM {message} AS y FORCE INDEX (fetch_idx)
  WHERE y.lane = {number} AND y.state = 0 AND y.available_at IS NULL {not_in_flight} {in_range}
  ORDER BY y.id LIMIT :quota)

-- name: pick_due
-- Pick the rows of retries and delayed events that are due in one lane, the longest due first.
-- variant in_range: in_range=in_range
-- example: n=0 number=7 not_in_flight=skip_in_flight
(SELECT {n} AS n, u.available_at AS sort_key, u.id, u.destination, u.size
   FROM ((SELECT y.available_at, y.id, y.destination, y.size FROM {message} AS y FORCE INDEX (fetch_idx)
           WHERE y.lane = {number} AND y.state = 1 AND y.available_at <= {now} {not_in_flight} {in_range}
           ORDER BY y.available_at, y.id LIMIT :quota)
         UNION ALL
         (SELECT y.available_at, y.id, y.destination, y.size FROM {message} AS y FORCE INDEX (fetch_idx)
           WHERE y.lane = {number} AND y.state = 2 AND y.available_at <= {now} {not_in_flight} {in_range}
           ORDER BY y.available_at, y.id LIMIT :quota)) AS u
  ORDER BY u.available_at, u.id LIMIT :quota)

-- name: pick_parked
-- Pick the rows that are parked in one lane for some destinations, in order.
-- example: n=0 parked=pick_parked_for
(SELECT {n} AS n, u.id AS sort_key, u.id, u.destination, u.size
   FROM ({parked}) AS u
  ORDER BY u.id LIMIT :quota)

-- name: pick_parked_for
-- Pick the rows that are parked in one lane for one destination, in order.
-- variant in_range: in_range=in_range
-- example: number=7 destination=:parked not_in_flight=skip_in_flight
(SELECT y.id, y.destination, y.size FROM {message} AS y FORCE INDEX (parked_idx)
  WHERE y.lane = {number} AND y.state = 4 AND y.destination = {destination} {not_in_flight} {in_range}
  ORDER BY y.id LIMIT :quota)

-- name: pick_waiting
-- Pick the rows that wait in one ordering queue, before anything that holds it back, in order.
-- variant in_range: in_range=in_range
-- example: n=0 number=7 key=:key destination=:destination blocker=43 not_in_flight=skip_in_flight
(SELECT {n} AS n, y.id AS sort_key, y.id, y.destination, y.size
   FROM {message} AS y FORCE INDEX (queue_idx)
  WHERE y.state = 3 AND y.lane = {number} AND y."key" = {key} AND y.destination = {destination} AND y.due_at IS NULL
    AND y.id < {blocker} {not_in_flight} {in_range}
  ORDER BY y.id LIMIT :quota)

-- name: find_blockers
-- Find, for each ordering queue in order, the first message that holds it back.
-- with: asked=queues
-- example: own_lanes=7
SELECT {first_blocker}
  FROM JSON_TABLE(:queues, '$[*]' COLUMNS (n FOR ORDINALITY, lane TINYINT PATH '$[0]',
         "key" VARCHAR(511) {bytewise} PATH '$[1]', destination VARCHAR(255) {bytewise} PATH '$[2]')) AS s
 ORDER BY s.n

-- name: has_earlier
-- Tell, for each position of an ordering queue, whether an earlier event of its key is pending.
-- with: earlier_among_many=earlier_due_of_keys asked=queries
-- example: own_lanes=7
SELECT {waits_for_earlier}
  FROM JSON_TABLE(:queries, '$[*]' COLUMNS (n FOR ORDINALITY, lane TINYINT PATH '$[0]',
         "key" VARCHAR(511) {bytewise} PATH '$[1]', destination VARCHAR(255) {bytewise} PATH '$[2]', id BIGINT PATH '$[3]')) AS m
 ORDER BY m.n

-- name: next_waiting_queues
-- Read ordering queues with waiting events after a position, along the index: the queue of each entry. The next call skips the
-- rest of the last queue.
SELECT q.lane, CONVERT(q."key" USING utf8mb4), q.destination
  FROM {message} AS q FORCE INDEX (queue_idx)
 WHERE q.state = 3 AND q.lane IN :lanes_in
   AND (q.lane > :lane OR (q.lane = :lane AND q."key" > :key)
        OR (q.lane = :lane AND q."key" = :key AND q.destination > :destination))
 ORDER BY q.lane, q."key", q.destination
 LIMIT :entries

-- name: find_orphaned_queues
-- Tell, for each ordering queue in order, whether its events wait although nothing holds them.
-- with: asked=queues
-- example: own_lanes=7
SELECT (SELECT h.id FROM {of_keys} AND h.state = 3 AND h.destination = s.destination {lowest}) < {first_blocker}
  FROM JSON_TABLE(:queues, '$[*]' COLUMNS (n FOR ORDINALITY, lane TINYINT PATH '$[0]',
         "key" VARCHAR(511) {bytewise} PATH '$[1]', destination VARCHAR(255) {bytewise} PATH '$[2]')) AS s
 ORDER BY s.n

-- name: next_parked_destination
-- Find the first destination after a name that has parked events: one probe per lane.
-- example: parked=next_parked_in_lane
SELECT min(d.destination) FROM ({parked}) AS d

-- name: next_parked_in_lane
-- Find the first destination after a name that has parked events in one lane.
-- example: number=7 beyond=>
SELECT min(q.destination) AS destination FROM {message} AS q FORCE INDEX (parked_idx)
 WHERE q.lane = {number} AND q.state = 4 AND q.destination {beyond} :after

-- name: first_outside_range
-- Find the first message of each ordering queue outside the range of times: one scan of the message table.
SELECT CONVERT(o."key" USING utf8mb4), o.destination, min(o.id)
  FROM {message} AS o
 WHERE o.lane IN :lanes_in AND o."key" IS NOT NULL AND (o.recorded_at < :after OR o.recorded_at >= :before)
 GROUP BY o."key", o.destination

-- fragment: in_range
-- Whether y lies in the range of times, and nothing before it in its key lies outside.
AND y.recorded_at >= coalesce(:after, y.recorded_at) AND (:before IS NULL OR y.recorded_at < :before)
AND NOT EXISTS (SELECT 1 FROM JSON_TABLE(:outside, '$[*]' COLUMNS ("key" VARCHAR(511) {bytewise} PATH '$[0]',
                  destination VARCHAR(255) {bytewise} PATH '$[1]', id BIGINT PATH '$[2]')) AS o
                 WHERE o."key" = y."key" AND o.id < y.id AND (y.destination = '' OR o.destination IN (y.destination, '')))

-- fragment: bytewise
-- How texts compare.
CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin

-- fragment: columns
-- The columns of a message, in the order of its fields. One that exceeds the bytes comes without its content.
m.id, m.lane, m.event_id, m.destination, {about:m.}, CONVERT(m."key" USING utf8mb4) AS "key",
CASE WHEN {within_bytes} THEN m.payload END AS payload, m.content_type,
CASE WHEN {within_bytes} THEN m.headers END AS headers, m.schema_version,
CASE WHEN {within_bytes} THEN m.correlation_id END AS correlation_id,
CASE WHEN {within_bytes} THEN m.causation_id END AS causation_id, CASE WHEN {within_bytes} THEN m.trace_id END AS trace_id,
m.occurred_at, m.recorded_at, m.available_at, m.held, m.attempts, m.deferrals

-- fragment: within_bytes
-- Whether a message fits: :bytes bounds the sum, :alone the first message.
(p.bytes <= :bytes OR (p.bytes = p.size AND p.size <= :alone))

-- fragment: each_holding
-- The states in which a message holds its ordering queue back: a retry, parked, blocked. MariaDB finds the first entry of an index
-- only for one state at a time, so that {probe} asks for each.
{probe:2} {between} {probe:4} {between} {probe:5}

-- fragment: each_pending
-- The states in which a message holds later ones of its key back: it waits, or holds its queue back.
{probe:3} {between} {each_holding}

-- fragment: or
-- Between conditions.
OR

-- fragment: any_holds_back
-- Whether anything holds later messages of its key back: mostly nothing does, and then no message is checked. MariaDB evaluates this
-- once. Retries, waiting, parked and blocked messages are looked for in all lanes: that takes four probes, and not four per lane.
-- with: probe=any_in_state between=or
({each_pending} OR EXISTS (SELECT 1 FROM {due}))

-- fragment: any_in_state
-- Whether any message is in a state.
EXISTS (SELECT 1 FROM {message} AS h FORCE INDEX (state_recorded_idx) WHERE h.state = {parameter})

-- fragment: checked_order
-- Whether a picked message waits for an earlier one. NULL if only has_earlier can tell: MariaDB has no LATERAL, and cannot read the
-- picked messages twice, so that a fetch would read what is due of a key again for each message.
-- with: earlier_among_many=NULL
CASE WHEN {any_holds_back} THEN {waits_for_earlier} ELSE false END

-- fragment: waits_for_earlier
-- Whether an earlier message of m's key is pending for m's destination, or for ''. One probe of the index per state and
-- destination: the first entry has the lowest sequence.
CASE WHEN m."key" IS NULL THEN false
     WHEN CASE WHEN m.destination = '' THEN {earlier_in_key} ELSE {earlier_in_queue} OR {earlier_unrouted} END THEN true
     WHEN {many_are_due} THEN {earlier_among_many}
     ELSE {earlier_due} END

-- fragment: earlier_due
-- Whether an earlier delayed event of m's key is due.
-- with: due_first=first_due
EXISTS (SELECT 1 FROM {due_first} AS d
         WHERE d."key" = m."key" AND d.id < m.id AND (m.destination = '' OR d.destination IN ('', m.destination)))

-- fragment: earlier_due_of_keys
-- The same, from what is due of the keys of a query.
-- with: due_first=first_due_of_keys
{earlier_due}

-- fragment: due
-- The delayed events that are due in the lanes of a statement.
{message} AS h FORCE INDEX (fetch_idx) WHERE h.lane IN ({own_lanes}) AND {is_delayed:h.} AND h.available_at <= {now}

-- fragment: first_due
-- The first delayed event that is due, by key and destination. MariaDB reads it once for all messages: by key it would read also
-- what is not due yet, because a correlated subquery has no range.
(SELECT h."key", h.destination, min(h.id) AS id FROM {due} AND h."key" IS NOT NULL GROUP BY h."key", h.destination)

-- fragment: first_due_of_keys
-- The same for the keys of a query, each of which is read once, however many messages or ordering queues of it are asked for.
(SELECT h."key", h.destination, min(h.id) AS id
   FROM (SELECT DISTINCT a.lane, a."key" FROM JSON_TABLE(:{asked}, '$[*]' COLUMNS (lane TINYINT PATH '$[0]',
           "key" VARCHAR(511) {bytewise} PATH '$[1]')) AS a) AS k
  STRAIGHT_JOIN {message} AS h FORCE INDEX (queue_idx)
  WHERE h.lane = k.lane AND h."key" = k."key" AND {is_delayed:h.} AND h.due_at <= {now}
  GROUP BY h."key", h.destination)

-- fragment: many_are_due
-- Whether so many delayed events are due that to read all of them costs more than to read those of the keys in question.
(SELECT count(*) > 1000 FROM (SELECT 1 FROM {due} LIMIT 1001) AS c)

-- fragment: earlier_in_key
-- Whether an earlier message of m's key is pending.
-- with: probe=earlier_of_key between=or
{each_pending}

-- fragment: earlier_of_key
-- Whether an earlier message of m's key is in a state.
EXISTS (SELECT 1 FROM {of_key} AND h.state = {parameter} AND h.id < m.id)

-- fragment: earlier_in_queue
-- Whether an earlier message of m's ordering queue is pending.
-- with: probe=earlier between=or these=of_queue
{each_pending}

-- fragment: earlier_unrouted
-- Whether an earlier message of m's key without a destination is pending.
-- with: probe=earlier between=or these=of_unrouted
{each_pending}

-- fragment: earlier
-- Whether the first of these messages in a state is earlier than m.
coalesce((SELECT h.id FROM {these} AND h.state = {parameter} {lowest}) < m.id, false)

-- fragment: of_key
-- The messages of m's key.
{message} AS h FORCE INDEX (queue_idx) WHERE h.lane = m.lane AND h."key" = m."key"

-- fragment: of_queue
-- The messages of m's ordering queue.
{message} AS h FORCE INDEX (queue_idx) WHERE h.lane = m.lane AND h."key" = m."key" AND h.destination = m.destination

-- fragment: of_unrouted
-- The messages of m's key that have no destination yet.
{message} AS h FORCE INDEX (queue_idx) WHERE h.lane = m.lane AND h."key" = m."key" AND h.destination = ''

-- fragment: lowest
-- The one with the lowest sequence.
AND h.due_at IS NULL ORDER BY h.id LIMIT 1

-- fragment: first_blocker
-- The sequence of the first message that holds ordering queue s back; the largest number if there is none. '' counts for all:
-- whatever waits without a destination holds every ordering queue of its key, and is held by all of them.
least(
  CASE WHEN s.destination = '' THEN least(
    {first_holding_key},
    coalesce((SELECT min(h.id) FROM {of_keys} AND h.state = 3 AND h.destination > ''), {largest_sequence}))
  ELSE least(
    {first_holding_queue},
    {first_unrouted})
  END,
  coalesce(CASE WHEN {many_are_due} THEN (SELECT min(d.id) FROM {first_due_of_keys} AS d WHERE {due_before_queue})
                ELSE (SELECT min(d.id) FROM {first_due} AS d WHERE {due_before_queue}) END, {largest_sequence}))

-- fragment: due_before_queue
-- Whether a delayed event d that is due holds ordering queue s back.
d."key" = s."key" AND (s.destination = '' OR d.destination IN ('', s.destination))

-- fragment: first_holding_key
-- The first messages of the key of ordering queue s that hold a queue of it back, by state.
-- with: probe=first_of_key between=,
{each_holding}

-- fragment: first_of_key
-- The first message of the key of ordering queue s in a state.
coalesce((SELECT min(h.id) FROM {of_keys} AND h.state = {parameter}), {largest_sequence})

-- fragment: first_holding_queue
-- The first messages of ordering queue s that hold it back, by state.
-- with: probe=first between=, these=of_named_queue
{each_holding}

-- fragment: first_unrouted
-- The first messages of the key of ordering queue s that are pending without a destination, by state.
-- with: probe=first between=, these=of_keys_unrouted
{each_pending}

-- fragment: first
-- The sequence of the first of these messages in a state; the largest number if there is none.
coalesce((SELECT h.id FROM {these} AND h.state = {parameter} {lowest}), {largest_sequence})

-- fragment: of_named_queue
-- The messages of ordering queue s.
{of_keys} AND h.destination = s.destination

-- fragment: of_keys_unrouted
-- The messages of the key of ordering queue s that have no destination yet.
{of_keys} AND h.destination = ''

-- fragment: of_keys
-- The messages of the key of ordering queue s.
{message} AS h FORCE INDEX (queue_idx) WHERE h.lane = s.lane AND h."key" = s."key"

-- name: arrivals
-- The newest message and the newest request: both are read at the end of an index.
SELECT (SELECT max(id) FROM {message}), (SELECT max(request_id) FROM {request})

-- name: skip_in_flight
-- Leave out the messages of a destination that are in flight: a part of the fetch of a lane.
-- example: flying=:flying ids=41,42
AND NOT (y.destination = {flying} AND y.id IN ({ids}))
