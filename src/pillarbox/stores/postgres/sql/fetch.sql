-- name: fetch_ready
-- Fetch events that are ready: per lane, in order, without those in flight, within a number and a sum of bytes.
-- with: given_lanes=lanes_as_given earlier_due=bounded_due
-- variant in_range: outside=outside_range in_range=in_range after=$8::timestamptz before=$9::timestamptz
-- variant from_low_water_marks: given_lanes=lanes_with_marks mark=mark_of_lane in_range=from_mark queue_range=from_mark
WITH lanes AS MATERIALIZED (
  -- Most lanes have nothing waiting: ask once per lane instead of once per message.
  SELECT l.lane,{mark}
         EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND ({holds_queue:h.}) OFFSET 0)
         OR EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND h.held = 'waiting' OFFSET 0)
         OR EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND h.held IS NULL AND h.available_at <= now() OFFSET 0) AS waiting
  FROM {given_lanes}
), due AS MATERIALIZED (
  -- The first due event of each ordering queue that is fetched, only read if a key has many: 500 messages of one key would each
  -- read all of them. One object, because a join could scan all of it for each message.
  SELECT jsonb_object_agg(s.key || E'\n' || s.destination, {first_due}) AS first
  FROM (SELECT DISTINCT p.lane, p.key, p.destination
        FROM (SELECT l.waiting, x.* FROM lanes l CROSS JOIN LATERAL (
                SELECT y.lane, y.key, y.destination FROM {message} y
                WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at IS NULL AND {not_in_flight} {queue_range}
                ORDER BY y.id LIMIT $2) x
              LIMIT $3) p
        WHERE p.waiting AND p.key IS NOT NULL) s
)
SELECT {columns}, CASE WHEN m.waiting THEN {waits_for_earlier} ELSE false END AS must_wait
FROM ({outside}
  SELECT l.waiting, x.*, {running_bytes}
  FROM lanes l CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at IS NULL AND {not_in_flight} {in_range}
    ORDER BY y.id LIMIT $2) x
  LIMIT $3
) m
WHERE {within_window}

-- name: fetch_due
-- Fetch retries and delayed events that are due: per lane, the longest due first.
-- variant in_range: outside=outside_range in_range=in_range after=$8::timestamptz before=$9::timestamptz
SELECT {columns}, {waits_for_earlier} AS must_wait
FROM ({outside}
  SELECT x.*, {running_bytes}
  FROM unnest($1::text::smallint[]) AS l(lane) CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at <= now() AND {not_in_flight} {in_range}
    ORDER BY y.available_at LIMIT $2) x
  LIMIT $3
) m
WHERE {within_window}

-- name: fetch_waiting
-- Fetch from ordering queues whose first event is settled: the waiting events in order, up to the first that holds the queue.
-- variant in_range: outside=outside_range in_range=in_range after=$10::timestamptz before=$11::timestamptz
SELECT {columns}, false AS must_wait
FROM ({outside}
  SELECT x.*, {running_bytes}
  FROM unnest($1::text::smallint[], $8::text::text[], $9::text::text[]) AS s(lane, key, destination)
  CROSS JOIN LATERAL ({first_blocker}) AS b(id)
  CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = s.lane AND y.key = s.key AND y.destination = s.destination AND y.held = 'waiting'
      AND y.id < b.id AND {not_in_flight} {in_range}
    ORDER BY y.id LIMIT $2) x
  LIMIT $3
) m
WHERE {within_window}

-- name: fetch_parked
-- Fetch events that are parked for these destinations: per lane, in order.
-- variant in_range: outside=outside_range in_range=in_range after=$9::timestamptz before=$10::timestamptz
SELECT {columns}, {waits_for_earlier} AS must_wait
FROM ({outside}
  SELECT x.*, {running_bytes}
  FROM unnest($1::text::smallint[]) AS l(lane) CROSS JOIN LATERAL (
    SELECT z.* FROM unnest($8::text::text[]) AS d(destination) CROSS JOIN LATERAL (
      SELECT {fetched} FROM {message} y
      WHERE y.lane = l.lane AND y.destination = d.destination AND y.held = 'parked' AND {not_in_flight} {in_range}
      ORDER BY y.id LIMIT $2) z
    ORDER BY z.id LIMIT $2) x
  LIMIT $3
) m
WHERE {within_window}

-- name: has_earlier
-- Tell, for each position of an ordering queue, whether an earlier event of its key is pending.
SELECT {waits_for_earlier} AS must_wait
FROM unnest($1::text::smallint[], $2::text::text[], $3::text::text[], $4::text::bigint[])
  WITH ORDINALITY AS m(lane, key, destination, id, n)
ORDER BY m.n

-- name: find_orphaned_queues
-- Find ordering queues whose events wait although nothing holds them. Hops along the index from queue to queue.
WITH RECURSIVE queue AS (
  SELECT $2::smallint AS lane, $3::text COLLATE "C" AS key, $4::text COLLATE "C" AS destination, NULL::bigint AS id
  UNION ALL
  SELECT f.lane, f.key, f.destination, f.id
  FROM queue CROSS JOIN LATERAL (
    (SELECT h.lane, h.key, h.destination, h.id FROM {message} h
     WHERE h.held = 'waiting' AND h.lane = queue.lane AND (h.key, h.destination) > (queue.key, queue.destination)
     ORDER BY h.key, h.destination, h.id LIMIT 1)
    UNION ALL
    -- Nothing more in this lane: the first ordering queue of the next lane that has one.
    (SELECT n.lane, g.key, g.destination, g.id FROM unnest($1::text::smallint[]) AS n(lane) CROSS JOIN LATERAL (
       SELECT h.key, h.destination, h.id FROM {message} h
       WHERE h.held = 'waiting' AND h.lane = n.lane AND h.key IS NOT NULL
       ORDER BY h.key, h.destination, h.id LIMIT 1) g
     WHERE n.lane > queue.lane ORDER BY n.lane LIMIT 1)
    LIMIT 1) f
), s AS MATERIALIZED (SELECT * FROM queue LIMIT $5 + 1)
SELECT s.lane, s.key, s.destination, s.id < (SELECT b.id FROM ({first_blocker}) AS b(id)) AS orphaned
FROM s WHERE s.id IS NOT NULL

-- name: parked_destinations
-- List the destinations that have parked events: one index probe per destination.
SELECT DISTINCT a.destination
  FROM unnest($1::text::smallint[]) AS l(lane)
 CROSS JOIN LATERAL (
   WITH RECURSIVE step AS (
     (SELECT m.destination FROM {message} m WHERE m.lane = l.lane AND m.held = 'parked' ORDER BY m.destination LIMIT 1)
     UNION ALL
     SELECT (SELECT m.destination FROM {message} m
              WHERE m.lane = l.lane AND m.held = 'parked' AND m.destination > step.destination
              ORDER BY m.destination LIMIT 1)
       FROM step WHERE step.destination IS NOT NULL
   )
   SELECT destination FROM step WHERE destination IS NOT NULL
 ) AS a

-- name: limit_statement_time
-- Set for how long the next statements of this transaction may run.
SELECT set_config('statement_timeout', $1::text, true)

-- name: find_writers
-- Read the last sequence that was drawn for a message, and after it the transactions that may write to the message table: an
-- INSERT locks the table before it draws a sequence, and keeps the lock until its transaction ends. Of a sequence that is drawn
-- in another order, or that this role must not read, the last one is 0. The session gets a name, unless it has one.
WITH session AS MATERIALIZED (
  SELECT set_config('pillarbox.session', coalesce(nullif({session_name}, ''), gen_random_uuid()::text), false) AS name
), drawn AS MATERIALIZED (
  -- A standby does not show the locks of its primary.
  SELECT CASE WHEN NOT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_sequence
                           WHERE seqrelid = pg_get_serial_sequence('{message}', 'id')::regclass
                             AND seqcache = 1 AND seqincrement = 1 AND NOT seqcycle)
              THEN ({recorded_so_far}) ELSE 0 END AS last
)
-- The condition on d.last makes PostgreSQL read the locks once it has read the sequence.
SELECT d.last, concat_ws(' ', s.name, {files}) AS generation,
       ARRAY(SELECT CASE WHEN l.pid IS NULL THEN 'prepared ' ELSE '' END || l.virtualtransaction FROM pg_locks l
             WHERE d.last > 0 AND l.locktype = 'relation' AND l.relation = '{message}'::regclass
               AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND l.mode = 'RowExclusiveLock' AND l.granted) AS writers
FROM session s CROSS JOIN drawn d

-- name: find_low_water_marks
-- Find the first ready message of each lane ($1) from one sequence ($2) up to another ($3); without one, the sequence after it.
SELECT l.lane, coalesce((
  SELECT y.id FROM {message} y
  WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at IS NULL AND y.id >= l.first AND y.id <= l.last
  ORDER BY y.id LIMIT 1), l.last + 1) AS mark
FROM unnest($1::text::smallint[], $2::text::bigint[], $3::text::bigint[]) AS l(lane, first, last)

-- fragment: fields
-- The columns of a message, in the order of its fields. Fetches read its content in different ways.
{row}id, {row}lane, {row}event_id, {row}destination, {about:row}, {row}key, {read:payload}, {row}content_type, {read_headers},
{row}schema_version, {read:correlation_id}, {read:causation_id}, {read:trace_id},
{row}occurred_at, {row}recorded_at, {row}available_at, {row}held, {row}attempts, {row}deferrals

-- fragment: columns
-- What a fetch returns: a message that exceeds the bytes comes without its content.
-- with: read=bounded read_headers=bounded_headers
{fields:m.}

-- fragment: bounded
-- A column of the content, if the message fits.
CASE WHEN {within_bytes} THEN m.{parameter} END AS {parameter}

-- fragment: bounded_headers
-- The headers, if the message fits.
{bounded:headers}

-- fragment: fetched
-- What a fetch reads of a row, its headers as text: converted once, for its size and for the result.
-- with: read=whole read_headers=headers_as_text
{fields:y.}

-- fragment: whole
-- A column of the content.
y.{parameter}

-- fragment: headers_as_text
-- The headers as text.
y.headers::text AS headers

-- fragment: waits_for_earlier
-- Whether an earlier message of m's key is pending for m's destination, or for ''. One probe per partial index.
-- with: earlier_due=any_due
CASE WHEN m.key IS NULL THEN false
     WHEN m.destination = '' THEN
       EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id AND ({holds_queue:h.}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id AND h.held = 'waiting' OFFSET 0)
       OR {earlier_due}
     ELSE
       EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = m.destination
               AND h.id < m.id AND ({holds_queue:h.}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = ''
                  AND h.id < m.id AND ({holds_queue:h.}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = m.destination
                  AND h.id < m.id AND h.held = 'waiting' OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = ''
                  AND h.id < m.id AND h.held = 'waiting' OFFSET 0)
       OR {earlier_due}
END

-- fragment: due_of_key
-- The due events that hold m's ordering queue back, unless they are later.
FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND {is_delayed:h.} AND h.available_at <= now()
  AND (m.destination = '' OR h.destination IN ('', m.destination))

-- fragment: any_due
-- Whether an event before m is due.
EXISTS (SELECT {due_of_key} AND h.id < m.id OFFSET 0)

-- fragment: bounded_due
-- The same. If the first few due events do not tell, the first one of the queue does; in a range of times it may be unknown.
coalesce((SELECT CASE WHEN bool_or(f.id < m.id) THEN true WHEN count(*) < 20 THEN false END
          FROM (SELECT h.id {due_of_key} LIMIT 20) f),
         ((SELECT first FROM due) ->> (m.key || E'\n' || m.destination))::bigint < m.id, {any_due})

-- fragment: first_due
-- The sequence of the first delayed event that is due and holds ordering queue s back; NULL if there is none.
(SELECT min(h.id) FROM {message} h WHERE h.lane = s.lane AND h.key = s.key AND {is_delayed:h.}
 AND h.available_at <= now() AND (s.destination = '' OR h.destination IN ('', s.destination)))

-- fragment: first_blocker
-- The sequence of the first message that holds ordering queue s back; the largest number if there is none.
SELECT least(
  (SELECT h.id FROM {message} h WHERE h.lane = s.lane AND h.key = s.key AND h.destination = s.destination AND ({holds_queue:h.})
   ORDER BY h.id LIMIT 1),
  -- '' counts for all: whatever waits without a destination holds every ordering queue of its key …
  (SELECT h.id FROM {message} h WHERE s.destination <> '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination = '' AND ({holds_queue:h.}) ORDER BY h.id LIMIT 1),
  (SELECT h.id FROM {message} h WHERE s.destination <> '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination = '' AND h.held = 'waiting' ORDER BY h.id LIMIT 1),
  -- … and is held by all of them.
  (SELECT min(h.id) FROM {message} h WHERE s.destination = '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination > '' AND ({holds_queue:h.})),
  (SELECT min(h.id) FROM {message} h WHERE s.destination = '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination > '' AND h.held = 'waiting'),
  {first_due},
  {largest_sequence})

-- fragment: not_in_flight
-- Whether a row is not in flight. A subselect is hashed by every plan, an array only by a plan made for its value.
(y.id, y.destination) NOT IN (SELECT i.id, d.destination
  FROM unnest($6::text::text[], $7::text::text[]) AS d(ids, destination)
  CROSS JOIN LATERAL unnest(d.ids::bigint[]) AS i(id))

-- fragment: size
-- The bytes of a message that count towards the bound of a fetch.
octet_length(x.payload) + octet_length(x.headers) + coalesce(octet_length(x.correlation_id), 0)
+ coalesce(octet_length(x.causation_id), 0) + coalesce(octet_length(x.trace_id), 0)

-- fragment: running_bytes
-- The sum of bytes so far, in the order of the lanes as given: no sort, and the limit cuts off the end of a lane or whole lanes.
{size} AS size, sum({size}) OVER (ROWS UNBOUNDED PRECEDING) AS bytes,
row_number() OVER (ROWS UNBOUNDED PRECEDING) AS number

-- fragment: within_bytes
-- Whether a message fits: $4 bounds the sum, $5 the first message.
m.bytes <= $4::bigint OR (m.bytes = m.size AND m.size <= $5::bigint)

-- fragment: within_window
-- What fits, and the first that does not: the relay must know that there is more.
m.bytes - m.size <= $4::bigint OR m.number = 2

-- fragment: outside_range
-- The first message outside the range of times, by key, and by key and destination: one scan of the message table. It is one
-- object, because a join became a scan of all keys for each message whenever the planner estimated too few rows.
WITH outside AS MATERIALIZED (
  SELECT jsonb_object_agg(f.key || CASE f.all_together WHEN 0 THEN E'\n' || f.destination ELSE '' END, f.id) AS first
  FROM (SELECT o.key, o.destination, grouping(o.destination) AS all_together, min(o.id) AS id FROM {message} o
        WHERE o.lane = ANY (ARRAY(SELECT unnest($1::text::smallint[]))) AND o.key IS NOT NULL
          AND (o.recorded_at < {after} OR o.recorded_at >= {before})
        GROUP BY o.key, ROLLUP (o.destination)) f
)

-- fragment: in_range
-- Whether y lies in the range of times, and nothing before it in its key lies outside.
AND y.recorded_at >= coalesce({after}, '-infinity') AND y.recorded_at < coalesce({before}, 'infinity')
AND coalesce(y.id < CASE y.destination
  WHEN '' THEN ((SELECT first FROM outside) ->> y.key)::bigint
  ELSE least(((SELECT first FROM outside) ->> (y.key || E'\n' || y.destination))::bigint,
             ((SELECT first FROM outside) ->> (y.key || E'\n'))::bigint) END, true)

-- fragment: lanes_as_given
-- The lanes of a fetch.
unnest($1::text::smallint[]) AS l(lane)

-- fragment: lanes_with_marks
-- The lanes of a fetch, each with its low-water mark: no ready message has a lower sequence.
unnest($1::text::smallint[], $8::text::bigint[]) AS l(lane, mark)

-- fragment: mark_of_lane
-- The low-water mark of a lane, unless sequences may have been drawn again since the marks were found: $9 tells the generation,
-- $10 the last sequence below any mark.
 CASE WHEN {generation} = $9::text AND ({recorded_so_far}) >= $10::bigint THEN l.mark ELSE 0 END AS mark,

-- fragment: from_mark
-- Whether y is not below the low-water mark of its lane: without it, a fetch skips every delivered row that the server has to keep.
AND y.id >= l.mark

-- fragment: generation
-- What changes when sequences may be drawn again. The session is another one: a server that crashed, was restored, or took over
-- may draw those again that it had not written to disk. Or the table was emptied, or its sequence restarted: their files changed.
(SELECT concat_ws(' ', {session_name}, {files}))

-- fragment: session_name
-- The name that find_writers gave to this session; NULL or '': none. A server that crashes ends all sessions, and a pooler may
-- run each statement in another one.
current_setting('pillarbox.session', true)

-- fragment: files
-- The files of the message table and of its sequence.
pg_relation_filenode('{message}'::regclass), pg_relation_filenode(pg_get_serial_sequence('{message}', 'id')::regclass)

-- fragment: same_row
-- Whether m is the row that a names, at the same sequence: another row with the same event id and destination is left alone.
-- Such conditions cannot be hashed or merged, so that every plan probes the primary key once for each a. With
-- m.event_id = a.event_id, a plan made while the table was small scans the whole table once it has grown.
m.event_id = ANY (ARRAY[a.event_id]) AND m.destination = a.destination AND (m.id = a.id) IS TRUE

-- name: hold_wakeup_lock
-- Ask producers to notify: they try this lock exclusively. The server releases it when the session ends.
SELECT pg_advisory_lock_shared(hashtextextended('{channel}', 0))

-- name: release_wakeup_lock
-- Ask producers not to notify.
SELECT pg_advisory_unlock_shared(hashtextextended('{channel}', 0))
