-- name: fetch_ready
-- Fetch events that are ready: in order, without those in flight, within a number and a sum of bytes.
-- with: picked=pick_ready rows=picked
-- variant in_range: outside=outside_range in_range=in_range
{fetch_at_once}

-- name: fetch_due
-- Fetch retries and delayed events that are due, the longest due first.
-- with: picked=pick_due rows=picked
-- variant in_range: outside=outside_range in_range=in_range
{fetch_at_once}

-- name: fetch_waiting
-- Fetch from ordering queues whose first event is settled: the waiting events in order, up to the first that holds the queue.
-- with: picked=pick_waiting rows=picked
-- variant in_range: outside=outside_range in_range=in_range
{fetch_at_once}

-- name: fetch_parked
-- Fetch events that are parked for these destinations, in order.
-- with: picked=pick_parked rows=picked
-- variant in_range: outside=outside_range in_range=in_range
{fetch_at_once}

-- fragment: fetch_at_once
-- The picked messages as one row, because between any two rows, and any two statements, Python's lock may change hands: how
-- many were picked, their fields, their payloads one after another, and the arrivals. The fields are null where the
-- messages are larger than :most, and in a database that is not in UTF-8, which would take the payloads for text.
WITH picked AS MATERIALIZED ({picked})
SELECT (SELECT count(*) FROM picked), '[' || group_concat(facts) || ']', CAST(group_concat(payload, '') AS BLOB), ({arrivals})
  FROM ({fetch_rows} AND (SELECT sum(size) FROM picked) <= :most AND length(CAST('a' AS BLOB)) = 1)

-- name: pick_ready
-- Pick the rows of events that are ready, in order.
-- variant in_range: outside=outside_range in_range=in_range
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM {message} AS m
 WHERE m.held IS NULL AND m.available_at IS NULL AND {not_in_flight} {in_range:m.}
 ORDER BY m.id
 LIMIT :limit

-- name: pick_due
-- Pick the rows of retries and delayed events that are due, the longest due first.
-- variant in_range: outside=outside_range in_range=in_range
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM {message} AS m
 WHERE m.held IS NULL AND m.available_at IS NOT NULL AND m.available_at <= {now}
   AND {not_in_flight} {in_range:m.}
 ORDER BY m.available_at, m.id
 LIMIT :limit

-- name: pick_waiting
-- Pick the rows that wait in some ordering queues and before anything that holds them back, each queue in order.
-- variant in_range: outside=outside_range in_range=in_range
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM (SELECT s.key, s.destination, {first_blocker} AS blocker
          FROM (SELECT DISTINCT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS destination
                  FROM json_each(:queues)) AS s) AS queue
 CROSS JOIN {message} AS m
 WHERE m.row_id IN (SELECT b.row_id
                      FROM {message} AS b
                     WHERE b.held = 'waiting' AND b.key = queue.key AND b.destination = queue.destination
                       AND b.id < queue.blocker AND {not_in_flight} {in_range:b.}
                     ORDER BY b.id
                     LIMIT :quota)
 ORDER BY m.id
 LIMIT :limit

-- name: pick_parked
-- Pick the rows that are parked for some destinations, in order; each destination is read no further than a fetch.
-- variant in_range: outside=outside_range in_range=in_range
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM (SELECT DISTINCT value AS name FROM json_each(:destinations)) AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id IN (SELECT a.row_id
                      FROM {message} AS a
                     WHERE a.held = 'parked' AND a.destination = d.name
                       AND {not_in_flight} {in_range:a.}
                     ORDER BY a.id
                     LIMIT :limit)
 ORDER BY m.id
 LIMIT :limit

-- name: fetch_rows
-- Read the messages of some rows, in their order: all fields of a Message but the payload as JSON, where the length stands for
-- it, and the payload. The last field tells whether the message waits for an earlier one; if nothing holds a queue
-- back, no row is asked for that. Times may be bytes that look like one, which JSON does not take.
-- with: rows=given_rows payload_length=length_of_payload read=whole read_headers=m.headers must_wait=checked_order
-- with: asked=rows_with_key
SELECT json_array({fields}) AS facts, CAST(m.payload AS BLOB) AS payload
  FROM {rows} AS r
 CROSS JOIN {message} AS m
 WHERE m.row_id = r.row_id

-- name: fetch_oversized
-- Read a message that is too large for its fetch, as in fetch_rows, without its content.
-- with: payload_length=0 read=NULL read_headers='{}' must_wait=0
SELECT json_array({fields}), x''
  FROM {message} AS m
 WHERE m.row_id = :row

-- fragment: fields
-- The fields of a Message, with the length of the payload instead of the payload.
m.id, 0, m.event_id, m.destination, {about:m.}, m.key, {payload_length}, m.content_type, {read_headers}, m.schema_version,
{read:correlation_id}, {read:causation_id}, {read:trace_id},
CAST(m.occurred_at AS TEXT), CAST(m.recorded_at AS TEXT), CAST(m.available_at AS TEXT), m.held, m.attempts, m.deferrals, {must_wait}

-- fragment: length_of_payload
-- The bytes of the payload.
length(CAST(m.payload AS BLOB))

-- fragment: whole
-- A column of the content.
m.{parameter}

-- fragment: checked_order
-- Whether a message waits for an earlier one, if that is asked for.
CASE WHEN :check_order AND ({any_holds_back}) THEN {waits_for_earlier} ELSE 0 END

-- name: has_earlier
-- For each probe [key, destination, id], in order: is an earlier event of its key pending?
-- with: asked=probes
SELECT {waits_for_earlier}
  FROM ({probes}) AS m
 ORDER BY m.row_id

-- name: find_orphaned_queues
-- Find ordering queues whose events wait although nothing holds them. Each hop along the index seeks the next destination of
-- the same key, else the next key; comparing both at once would scan the key.
WITH RECURSIVE queue (key, destination, id) AS (
  SELECT b.key, b.destination, b.id
    FROM {message} AS b
   WHERE b.row_id = coalesce(
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'waiting' AND x.key = :key AND x.destination > :destination
             ORDER BY x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'waiting' AND x.key > :key
             ORDER BY x.key, x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'waiting' AND x.key IS NOT NULL AND :key IS NULL
             ORDER BY x.key, x.destination, x.id LIMIT 1))
  UNION ALL
  SELECT b.key, b.destination, b.id
    FROM queue AS l
   CROSS JOIN {message} AS b
   WHERE b.row_id = {next_waiting_queue}
   LIMIT :limit
)
SELECT s.key, s.destination, s.id < {first_blocker} FROM queue AS s ORDER BY s.key, s.destination

-- fragment: next_waiting_queue
-- The first message of the ordering queue with waiting messages that follows queue l.
coalesce((SELECT x.row_id FROM {message} AS x
           WHERE x.held = 'waiting' AND x.key = l.key AND x.destination > l.destination
           ORDER BY x.destination, x.id LIMIT 1),
         (SELECT x.row_id FROM {message} AS x
           WHERE x.held = 'waiting' AND x.key > l.key
           ORDER BY x.key, x.destination, x.id LIMIT 1))

-- name: parked_destinations
-- List the destinations that have parked events: one index probe per destination.
WITH RECURSIVE step(destination) AS (
  SELECT min(destination) FROM {message} WHERE held = 'parked'
  UNION ALL
  SELECT (SELECT min(m.destination) FROM {message} AS m WHERE m.held = 'parked' AND m.destination > step.destination)
    FROM step WHERE step.destination IS NOT NULL
)
SELECT destination FROM step WHERE destination IS NOT NULL

-- fragment: waits_for_earlier
-- Whether an earlier message of m's key is pending for m's destination, or for ''. One probe per partial index, except of
-- delayed events, which are in the order of their times.
-- CASE, because SQLite evaluates both sides of an OR whose value is asked for.
CASE WHEN m.key IS NULL THEN 0
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE ({holds_queue:h.})
                     AND h.key = m.key AND h.destination IN (m.destination, '') AND h.id < m.id) THEN 1
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE h.held = 'waiting'
                     AND h.key = m.key AND h.destination IN (m.destination, '') AND h.id < m.id) THEN 1
     WHEN {any_due} AND m.row_id IN ({after_due}) THEN 1
     WHEN m.destination <> '' THEN 0
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE ({holds_queue:h.})
                     AND h.key = m.key AND h.id < m.id) THEN 1
     WHEN EXISTS (SELECT 1 FROM {message} AS h WHERE h.held = 'waiting' AND h.key = m.key AND h.id < m.id) THEN 1
     ELSE 0
END

-- fragment: after_due
-- Of the rows asked for, those after a due delayed event of their key. The due events of a key are read once for all its rows,
-- because their index is not in the order of sequences. SQLite runs this once per statement: nothing in it depends on m.
WITH asked AS MATERIALIZED ({asked}),
due AS MATERIALIZED (
  SELECT h.key, h.destination, min(h.id) AS id
    FROM (SELECT key, max(id) AS last FROM asked WHERE key IS NOT NULL GROUP BY key) AS asked_key
   CROSS JOIN {message} AS h
   WHERE {is_delayed:h.}
     AND h.key = asked_key.key AND h.available_at <= {now} AND h.id < asked_key.last
   GROUP BY h.key, h.destination),
due_of_key AS MATERIALIZED (
  SELECT key, min(id) AS id, min(id) FILTER (WHERE destination = '') AS unrouted FROM due GROUP BY key)
SELECT asked.row_id
  FROM due_of_key
  JOIN asked ON asked.key = due_of_key.key
  LEFT JOIN due ON due.key = asked.key AND due.destination = asked.destination
 WHERE due.id < asked.id OR due_of_key.unrouted < asked.id OR (asked.destination = '' AND due_of_key.id < asked.id)

-- fragment: rows_with_key
-- The rows of a fetch, as after_due asks for them.
SELECT b.row_id, b.key, b.destination, b.id FROM {rows} AS r CROSS JOIN {message} AS b WHERE b.row_id = r.row_id

-- fragment: probes
-- The probes of has_earlier as rows of messages; their number stands for the row.
SELECT key AS row_id, json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS destination,
       json_extract(value, '$[2]') AS id
  FROM json_each(:queries)

-- fragment: first_blocker
-- The sequence of the first message that holds ordering queue s back; the largest number if there is none.
min(
  coalesce((SELECT min(h.id) FROM {message} AS h
             WHERE ({holds_queue:h.})
               AND h.key = s.key AND (s.destination = '' OR h.destination IN (s.destination, ''))),
           {largest_sequence}),
  coalesce((SELECT min(h.id) FROM {message} AS h
             WHERE {is_delayed:h.}
               AND h.key = s.key AND h.available_at <= {now}
               AND (s.destination = '' OR h.destination IN (s.destination, ''))),
           {largest_sequence}),
  coalesce(CASE WHEN s.destination <> ''
                THEN (SELECT min(h.id) FROM {message} AS h
                       WHERE h.held = 'waiting' AND h.key = s.key AND h.destination = '')
                ELSE (SELECT min(h.id) FROM {message} AS h
                       WHERE h.held = 'waiting' AND h.key = s.key AND h.destination > '')
           END,
           {largest_sequence}))

-- fragment: any_holds_back
-- Whether any message holds later ones of its key back: one probe per partial index. If none does, a fetch need not ask for
-- each row.
SELECT EXISTS (SELECT 1 FROM {message} AS w
                WHERE {holds_queue:w.})
    OR EXISTS (SELECT 1 FROM {message} AS w WHERE w.held = 'waiting')
    OR {any_due}

-- fragment: any_due
-- Whether any retry or delayed event is due.
EXISTS (SELECT 1 FROM {message} AS w
         WHERE w.held IS NULL AND w.available_at IS NOT NULL AND w.available_at <= {now})

-- fragment: not_in_flight
-- Whether the row of the innermost FROM is not in flight. Most have no destination yet: their numbers are compared, which costs
-- half of comparing texts (id, space, destination); comparing pairs took fifteen times as long.
CASE destination WHEN '' THEN id NOT IN (SELECT value FROM json_each(:unrouted))
     ELSE id || ' ' || destination NOT IN (SELECT value FROM json_each(:in_flight)) END

-- fragment: size
-- The bytes of m that count towards the bound of a fetch. Of a BLOB SQLite knows the length without reading it.
CASE typeof(m.payload) WHEN 'blob' THEN length(m.payload) ELSE length(CAST(m.payload AS BLOB)) END
+ length(CAST(m.headers AS BLOB))
+ coalesce(length(CAST(m.correlation_id AS BLOB)), 0) + coalesce(length(CAST(m.causation_id AS BLOB)), 0)
+ coalesce(length(CAST(m.trace_id AS BLOB)), 0)

-- fragment: given_rows
-- The rows that a caller names.
(SELECT value AS row_id FROM json_each(:rows))

-- fragment: outside_range
-- The first message of each ordering queue outside the range of times: one scan of the message table.
WITH outside AS MATERIALIZED (
  SELECT o.key, o.destination, min(o.id) AS id
    FROM {message} AS o
   WHERE o.key IS NOT NULL AND (o.recorded_at < :after OR o.recorded_at >= :before)
   GROUP BY o.key, o.destination)

-- fragment: in_range
-- Whether a row lies in the range of times, and nothing before it in its key lies outside.
AND (:after IS NULL OR {row}recorded_at >= :after) AND (:before IS NULL OR {row}recorded_at < :before)
AND NOT EXISTS (SELECT 1 FROM outside AS o
                 WHERE o.key = {row}key AND o.id < {row}id
                   AND ({row}destination = '' OR o.destination IN ({row}destination, '')))

-- name: set_idle_until
-- Write until when a relay is idle.
UPDATE {relay}
   SET asleep_until = {future:seconds}
 WHERE id = :relay

-- name: clear_idle
-- Write that a relay is not idle.
UPDATE {relay} SET asleep_until = NULL WHERE id = :relay AND asleep_until IS NOT NULL

-- name: arrivals
-- Numbers that grow with every message and every request that is committed, and with nothing else.
SELECT json_array(max(seq) FILTER (WHERE name = '{prefix}message'), max(seq) FILTER (WHERE name = '{prefix}request'))
  FROM sqlite_sequence
