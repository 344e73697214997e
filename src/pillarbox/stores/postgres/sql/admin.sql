-- name: list_events
-- A page of events from one snapshot of hot table, history and dead letters. Each is walked along an index from position
-- (:recorded_at, :id, :place) back to time :since, for at most :waiting, :delivered and :dead rows; the last of these is brought whether it is wanted or not.
-- variant blocked: of_waiting=list_blocked
-- variant in_flight: of_waiting=list_in_flight
-- variant of_key: of_history=list_of_key
-- variant of_type: of_history=list_of_type
WITH hand AS MATERIALIZED (
  SELECT DISTINCT x.event_id, x.destination
  FROM {relay} r, jsonb_to_recordset(r.in_flight) AS x(event_id text, destination text) WHERE r.lease_until > now()
), waiting AS (
  SELECT w.*, d.next_attempt_at, d.last_error AS outage, CASE WHEN w.held = 'blocked' THEN 'FAILED' WHEN h.event_id IS NOT NULL THEN 'PROCESSING'
                                  ELSE 'PENDING' END AS status
  FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
          SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
                 m.deferrals, m.last_error, m.last_attempt_at, m.available_at, m.held
          FROM {message} m
          WHERE {list_from_position} AND m.recorded_at >= :since {of_waiting}
          ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT :waiting) m) w
  LEFT JOIN hand h ON h.event_id = w.event_id AND h.destination = w.destination
  LEFT JOIN {outages} d ON d.destination = w.destination AND (w.destination = '' OR w.held = 'parked' OR w.deferrals > 0)
                      AND w.held IS DISTINCT FROM 'blocked' AND w.held IS DISTINCT FROM 'waiting'
), delivered AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
    SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
           m.deferrals, m.last_error, m.last_attempt_at, m.published_at
    FROM {history} m
    WHERE {list_from_position} AND m.recorded_at >= :since {of_history}
    ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT :delivered) m
), dead AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
    SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
           m.deferrals, m.error AS last_error, m.last_attempt_at
    FROM {dead_letter} m
    WHERE {list_from_position} AND m.recorded_at >= :since
    ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT :dead) m
)
SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts,
       CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END AS retry_count, last_error, last_attempt_at, next_retry_at,
       published_at, wanted, edge
FROM (
  (SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts, deferrals,
          coalesce(last_error, outage) AS last_error, last_attempt_at,
          CASE WHEN held IS DISTINCT FROM 'blocked' THEN coalesce(available_at, next_attempt_at) END AS next_retry_at,
          NULL::timestamptz AS published_at, wanted, n = :waiting AS edge
   FROM waiting m CROSS JOIN LATERAL (SELECT {list_wanted} AND status = coalesce(:status, status)
     AND (NOT :retrying OR (attempts + deferrals > 0 AND last_attempt_at IS NOT NULL AND status <> 'FAILED'))) AS w(wanted)
   WHERE wanted OR n = :waiting ORDER BY n LIMIT :most)
  UNION ALL
  (SELECT recorded_at, id, destination, event_id, 'PUBLISHED', event_type, key, attempts, deferrals, last_error,
          last_attempt_at, NULL, published_at, wanted, n = :delivered
   FROM delivered m CROSS JOIN LATERAL (SELECT {list_wanted}) AS w(wanted) WHERE wanted OR n = :delivered ORDER BY n LIMIT :most)
  UNION ALL
  (SELECT recorded_at, id, destination, event_id, 'FAILED', event_type, key, attempts, deferrals, last_error, last_attempt_at, NULL,
          NULL, wanted, n = :dead
   FROM dead m CROSS JOIN LATERAL (SELECT {list_wanted}) AS w(wanted) WHERE wanted OR n = :dead ORDER BY n LIMIT :most)
) AS found

-- fragment: list_from_position
-- From position (:recorded_at, :id, :place) back. A strict comparison of all three would let the planner take rows of that very time
-- for none, although one transaction may have recorded a million: it would read and sort them all.
(m.recorded_at, m.id) <= (:recorded_at, :id) AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination < :place)

-- fragment: list_wanted
-- Is a row of the type, the key, the destination and the aggregate that were asked for, and has it that error?
m.event_type = coalesce(:type, m.event_type) AND (:key::text IS NULL OR m.key = :key) AND m.destination = coalesce(:destination, m.destination)
AND (:aggregate_type::text IS NULL OR m.aggregate_type = :aggregate_type) AND (:aggregate_id::text IS NULL OR m.aggregate_id = :aggregate_id)
AND (:error::text IS NULL OR strpos(m.last_error, :error) > 0)

-- fragment: list_blocked
-- Of what waits, only that which holds its key until a person decides.
AND m.held = 'blocked'

-- fragment: list_in_flight
-- Of what waits, only that which a relay has in hand.
AND (m.event_id, m.destination) IN (SELECT event_id, destination FROM hand)

-- fragment: list_of_key
-- Of what was delivered, only one key, by its own index.
AND m.key = :key

-- fragment: list_of_type
-- Of what was delivered, only one type, by its own index.
AND m.event_type = :type

-- name: retry_dead_letters
-- Send dead letters again: to the end of their key, attempts at zero. Those whose identity waits already stay dead.
WITH mine AS MATERIALIZED (
  -- Locked: whom somebody else sends again at this moment is gone once they are done, and is not sent twice.
  SELECT * FROM {dead_letter} WHERE dead_letter_id = ANY (:dead_letter_ids::bigint[]) ORDER BY dead_letter_id FOR UPDATE
), chosen AS MATERIALIZED (
  SELECT DISTINCT ON (event_id, destination) * FROM mine ORDER BY event_id, destination, dead_letter_id
), back AS (
  INSERT INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
  SELECT event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, 1 FROM chosen ORDER BY dead_letter_id
  ON CONFLICT DO NOTHING RETURNING event_id, destination
), gone AS (
  DELETE FROM {dead_letter} d USING chosen c JOIN back b USING (event_id, destination) WHERE d.dead_letter_id = c.dead_letter_id
  RETURNING d.event_id, d.destination, d.dead_letter_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif(:by, ''), current_user), 'retry', event_id,
    jsonb_build_object('destination', destination, 'dead_letter_id', dead_letter_id) FROM gone WHERE :bulk_action::bigint IS NULL
), progress AS (
  UPDATE {audit} a SET {audit_progress} FROM (SELECT count(*) AS done FROM gone) g WHERE a.audit_id = :bulk_action
), again AS (
  -- An operator wants it sent, whatever the ledger says; the one try does the same for the history.
  UPDATE {ledger} p SET status = 'PROCESSING', send_number = NULL, updated_at = now() FROM back b
  WHERE p.event_id = b.event_id AND p.destination = b.destination
)
SELECT count(*) FROM gone

-- name: discard_dead_letters
-- Drop dead letters for good, and remember who did.
WITH gone AS (
  DELETE FROM {dead_letter} WHERE dead_letter_id = ANY (:dead_letter_ids::bigint[]) RETURNING event_id, destination, dead_letter_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif(:by, ''), current_user), 'discard', event_id,
    jsonb_build_object('destination', destination, 'dead_letter_id', dead_letter_id) FROM gone WHERE :bulk_action::bigint IS NULL
), progress AS (
  UPDATE {audit} a SET {audit_progress} FROM (SELECT count(*) AS done FROM gone) g WHERE a.audit_id = :bulk_action
)
SELECT count(*) FROM gone

-- name: edit_dead_letter
-- Send a dead letter again with another content: to the end of its key, attempts at zero. If its identity waits already it
-- stays dead as it is.
WITH chosen AS MATERIALIZED (
  SELECT * FROM {dead_letter} WHERE dead_letter_id = :dead_letter_id FOR UPDATE
), back AS (
  INSERT INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
  SELECT event_id, destination, {about}, ordering_key, :payload, content_type, :headers::jsonb,
    {context}, occurred_at, recorded_at, 1 FROM chosen
  ON CONFLICT DO NOTHING RETURNING event_id, destination
), gone AS (
  DELETE FROM {dead_letter} d USING back b WHERE d.dead_letter_id = :dead_letter_id RETURNING d.event_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif(:by, ''), current_user), 'edit', event_id, :detail::jsonb FROM gone
), again AS (
  -- An operator wants it sent, whatever the ledger says; the one try does the same for the history.
  UPDATE {ledger} p SET status = 'PROCESSING', send_number = NULL, updated_at = now() FROM back b
  WHERE p.event_id = b.event_id AND p.destination = b.destination
)
SELECT count(*) FROM gone

-- name: add_requests
-- Ask the owners of their lanes to do something with waiting messages.
INSERT INTO {request} (action, event_id, destination, delay, requested_by, bulk_action_id)
SELECT :action, e.event_id, e.destination, :delay::double precision, coalesce(nullif(:by, ''), current_user), :bulk_action
FROM unnest(:event_ids::text[], :destinations::text[]) WITH ORDINALITY AS e(event_id, destination, n) ORDER BY e.n RETURNING request_id

-- fragment: audit_progress
-- An entry of the audit grows by what was done, and so much less is left.
count = a.count + g.done, detail = a.detail || jsonb_build_object('left', (a.detail->>'left')::bigint - g.done)

-- name: replay_count
-- How many of the history a replay wants, up to :enough: at most :scan rows are looked at from behind position (:recorded_at, :id, :place), by the
-- time of recording; the last of these says where to go on.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT count(*) FILTER (WHERE wanted), max(recorded_at) FILTER (WHERE edge), max(id) FILTER (WHERE edge),
       max(destination) FILTER (WHERE edge)
FROM (SELECT m.recorded_at, m.id, m.destination, w.wanted, m.n = :scan AS edge
      FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at, m.id, m.destination) AS n FROM (
              SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.published_at,
                     m.headers ? 'replayof' AS copy
              FROM {history} m
              -- Nothing is delivered before it is recorded: so days can be left out. Where to go on: see list_from_position.
              WHERE m.published_at >= :since AND (m.recorded_at, m.id) >= (:recorded_at, :id)
                AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination > :place) AND m.recorded_at < :until {narrowed}
              ORDER BY m.recorded_at, m.id, m.destination LIMIT :scan) m) m
      CROSS JOIN LATERAL (SELECT {replay_wanted}) AS w(wanted)
      WHERE w.wanted OR m.n = :scan ORDER BY m.recorded_at, m.id, m.destination LIMIT :enough) AS looked_at

-- name: replay_next
-- The next of the history that a replay wants, in the order of delivery: at most :scan rows are looked at from behind place
-- (:published_at, :id, :place) up to time :began; the last of these is brought whether it is wanted or not.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT m.published_at, m.id, m.destination, m.event_id, m.size, w.wanted, m.n = :scan AS edge
FROM (SELECT m.*, row_number() OVER (ORDER BY m.published_at, m.id, m.destination) AS n FROM (
        SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at,
               m.headers ? 'replayof' AS copy, octet_length(m.payload) AS size
        FROM {history} m
        -- The first says which days can be left out, the two after it where to go on: see list_from_position.
        WHERE m.published_at >= :published_at AND (m.published_at, m.id) >= (:published_at, :id)
          AND ((m.published_at, m.id) <> (:published_at, :id) OR m.destination > :place) AND m.published_at <= :began {narrowed}
        ORDER BY m.published_at, m.id, m.destination LIMIT :scan) m) m
CROSS JOIN LATERAL (SELECT {replay_wanted}) AS w(wanted)
-- In the order of the look: no sort, and the limit ends it early.
WHERE w.wanted OR m.n = :scan ORDER BY m.published_at, m.id, m.destination LIMIT :most

-- fragment: replay_wanted
-- Does a replay want a row? Of type :type, key :key, destination :destination, recorded since :since and before :until, of events :events; :to
-- says whether all go to one place.
m.event_type = coalesce(:type, m.event_type) AND (:key::text IS NULL OR m.key = :key)
AND m.destination = coalesce(:destination, m.destination) AND m.recorded_at >= :since AND m.recorded_at < :until
AND CASE WHEN :events::text[] IS NULL THEN NOT m.copy ELSE m.event_id = ANY (:events::text[]) END
-- An event goes once to each place, whatever the number of its deliveries.
AND NOT EXISTS (
  SELECT FROM {history} o
  WHERE o.event_id = m.event_id AND o.published_at <= m.published_at
    AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
    AND o.destination = coalesce(:destination, CASE WHEN :to::text IS NOT NULL THEN o.destination ELSE m.destination END)
    AND o.recorded_at >= :since AND o.recorded_at < :until)

-- fragment: replay_of_event
-- Of what was delivered, only some events, by their own index.
AND m.event_id = ANY (:events::text[])

-- fragment: replay_of_key
-- Of what was delivered, only one key, by its own index.
AND m.key = :key

-- fragment: replay_of_type
-- Of what was delivered, only one type, by its own index.
AND m.event_type = :type

-- name: replay_copy
-- Copy delivered messages, each to the end of its key, and write how far the replay is, if it is still where the caller
-- says (:was): of two who go on with the same replay, one waits here and then finds that it moved.
WITH held AS MATERIALIZED (
  SELECT audit_id FROM {audit} WHERE audit_id = :number AND what = 'replay' AND detail @> :was::jsonb FOR UPDATE
), copied AS (
  INSERT INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at)
  SELECT i.copy_id, coalesce(:to, m.destination), m.event_type, m.aggregate_type, m.aggregate_id,
    -- The history has the key and not where it came from.
    CASE WHEN m.key IS DISTINCT FROM coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN m.key END,
    m.payload, m.content_type, m.headers || jsonb_build_object('replayof', coalesce(m.headers->>'replayof', m.event_id)),
    {context:m.}, m.occurred_at
  FROM held, unnest(:event_ids::text[], :ids::bigint[], :destinations::text[], :times::timestamptz[], :copy_ids::text[]) WITH ORDINALITY
    AS i(event_id, id, destination, published_at, copy_id, n)
  JOIN {history} m ON m.event_id = i.event_id AND m.id = i.id AND m.destination = i.destination AND m.published_at = i.published_at
  ORDER BY i.n
  ON CONFLICT DO NOTHING RETURNING 1
)
UPDATE {audit} a SET count = a.count + (SELECT count(*) FROM copied), detail = a.detail || :position::jsonb
FROM held WHERE a.audit_id = held.audit_id
RETURNING a.at, a.count, a.detail::text

-- name: archive_count
-- How much is old enough to go, counted up to a limit; a missing age counts nothing.
SELECT (SELECT count(*) FROM (SELECT FROM {history}
                              WHERE published_at < now() - :history::double precision * interval '1 second' LIMIT :most) AS h),
       (SELECT count(*) FROM (SELECT FROM {dead_letter}
                              WHERE dead_lettered_at < now() - :dead::double precision * interval '1 second' LIMIT :most) AS d),
       (SELECT count(*) FROM (SELECT FROM {inbox}
                              WHERE received_at < now() - :inbox::double precision * interval '1 second' LIMIT :most) AS r),
       (SELECT count(*) FROM (SELECT FROM {ledger} WHERE status <> 'PROCESSING'
                              AND created_at < now() - :ledger::double precision * interval '1 second' LIMIT :most) AS l),
       (SELECT count(*) FROM (SELECT FROM {audit}
                              WHERE at < now() - :audit::double precision * interval '1 second' LIMIT :most) AS a)

-- name: archive_read_history
-- Old history, whole, by the time it was recorded, within a number and a sum of bytes.
SELECT id, event_id, destination, 'PUBLISHED', {about}, key, payload, content_type,
       headers::text, {context}, occurred_at, recorded_at, published_at, seconds,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       last_error, last_attempt_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT x.*, sum(octet_length(x.payload) + octet_length(x.headers::text)) OVER w AS bytes, row_number() OVER w AS number
      FROM (SELECT * FROM {history}
            WHERE published_at < now() - :older::double precision * interval '1 second'
              -- Where to go on: see list_from_position.
              AND (recorded_at, id) >= (:recorded_at, :id) AND ((recorded_at, id) <> (:recorded_at, :id) OR destination > :destination)
            ORDER BY recorded_at, id, destination LIMIT :limit) x
      WINDOW w AS (ORDER BY x.recorded_at, x.id, x.destination ROWS UNBOUNDED PRECEDING)) m
WHERE bytes <= :bytes OR number = 1
ORDER BY recorded_at, id, destination

-- name: archive_read_dead
-- Old dead letters, whole, by their number, within a number and a sum of bytes.
SELECT id, event_id, destination, 'FAILED', {about}, key, payload, content_type,
       headers::text, {context}, occurred_at, recorded_at, NULL, NULL,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       error, last_attempt_at, NULL, NULL, NULL, dead_letter_id, first_failed_at, dead_lettered_at
FROM (SELECT x.*, sum(octet_length(x.payload) + octet_length(x.headers::text)) OVER w AS bytes, row_number() OVER w AS number
      FROM (SELECT * FROM {dead_letter}
            WHERE dead_lettered_at < now() - :older::double precision * interval '1 second' AND dead_letter_id > :dead_letter_id ORDER BY dead_letter_id LIMIT :limit) x
      WINDOW w AS (ORDER BY x.dead_letter_id ROWS UNBOUNDED PRECEDING)) m
WHERE bytes <= :bytes OR number = 1
ORDER BY dead_letter_id

-- name: archive_delete_history
-- Drop exactly these rows of the history.
WITH gone AS (
  DELETE FROM {history} h
  USING unnest(:event_ids::text[], :ids::bigint[], :destinations::text[], :times::timestamptz[]) AS k(event_id, id, destination, published_at)
  WHERE h.event_id = k.event_id AND h.id = k.id AND h.destination = k.destination AND h.published_at = k.published_at
  RETURNING 1
) SELECT count(*) FROM gone

-- name: archive_delete_dead
-- Drop exactly these dead letters.
WITH gone AS (
  DELETE FROM {dead_letter} WHERE dead_letter_id = ANY (:dead_letter_ids::bigint[]) RETURNING 1
) SELECT count(*) FROM gone

-- name: keys_blocked
-- Keys that stand still: first those whose head waits for a person, then, of so many lines, those whose head waits for its retry
-- with others behind it, the longest first. Hops over the index from line to line; 100,000 heads with nobody behind cost nothing.
WITH RECURSIVE line AS (
  (SELECT h.lane, h.key, h.destination FROM {message} h
   WHERE h.held = 'waiting' ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1)
  UNION ALL
  SELECT f.lane, f.key, f.destination FROM line CROSS JOIN LATERAL (
    SELECT h.lane, h.key, h.destination FROM {message} h
    WHERE h.held = 'waiting' AND (h.lane, h.key, h.destination) > (line.lane, line.key, line.destination)
    ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1) f
), looked_at AS MATERIALIZED (SELECT * FROM line LIMIT :lines
), retrying AS MATERIALIZED (
  SELECT h.* FROM looked_at l CROSS JOIN LATERAL (
    SELECT h.lane, h.key, h.destination, h.event_id, h.event_type, h.last_error, h.held, h.available_at,
           coalesce(h.first_failed_at, h.recorded_at) AS since
    FROM {message} h WHERE h.lane = l.lane AND h.key = l.key AND h.destination = l.destination AND ({holds_queue:h.})
    ORDER BY h.id LIMIT 1) h
  WHERE h.held IS NULL AND h.available_at > now() ORDER BY h.since LIMIT :limit
)
(SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at) AS since,
        (SELECT count(*) FROM (SELECT FROM {message} b WHERE b.lane = m.lane AND b.key = m.key
                               AND b.destination IN (m.destination, '') AND b.held = 'waiting' LIMIT :most::int + 1) AS w) AS waiting,
        NULL::timestamptz AS next_attempt
 FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT :limit)
UNION ALL
(SELECT r.key, r.destination, r.event_id, r.event_type, r.last_error, r.since,
        (SELECT count(*) FROM (SELECT FROM {message} b WHERE b.lane = r.lane AND b.key = r.key
                               AND b.destination IN (r.destination, '') AND b.held = 'waiting' LIMIT :most::int + 1) AS w),
        r.available_at
 FROM retrying r ORDER BY r.since)
LIMIT :limit

-- name: keys_queue
-- What holds place (:recorded_at, :id) of key :key up on the way to destination :destination, and the next :limit behind it, each walked along an index.
-- What nobody has read yet is known by its lane only, dead letters by their number: of either, :scan are looked at.
WITH line AS (
  SELECT DISTINCT d.destination, (hashtext(:key) & 63)::smallint AS lane FROM unnest(ARRAY['', :destination::text]) AS d(destination)
), later AS (
  SELECT n.* FROM line l CROSS JOIN LATERAL (
    (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} h
     WHERE h.lane = l.lane AND h.key = :key AND h.destination = l.destination AND h.id > :id AND h.held = 'waiting'
     ORDER BY h.id LIMIT :limit)
    UNION ALL
    (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} h
     WHERE h.lane = l.lane AND h.key = :key AND h.destination = l.destination AND h.id > :id AND ({holds_queue:h.})
     ORDER BY h.id LIMIT :limit)) n
  UNION ALL
  (SELECT r.recorded_at, r.id, r.destination, r.event_id, r.event_type, r.held FROM (
     SELECT * FROM {message} m
     WHERE m.lane = (SELECT lane FROM line LIMIT 1) AND m.id > :id AND m.held IS NULL AND m.available_at IS NULL
     ORDER BY m.id LIMIT :scan) r
   WHERE r.key = :key AND r.destination IN ('', :destination) ORDER BY r.id LIMIT :limit)
)
(SELECT true AS is_head, h.recorded_at, h.id, h.destination, h.event_id, '' AS status, h.event_type, h.held,
        CASE WHEN h.held IS NULL THEN h.available_at END AS next_attempt
 FROM {message} h
 WHERE h.lane = (SELECT lane FROM line LIMIT 1) AND h.key = :key AND (:destination = '' OR h.destination IN ('', :destination)) AND h.id < :id
   AND ({holds_queue:h.})
 ORDER BY h.id LIMIT 1)
UNION ALL
(SELECT false, f.recorded_at, f.id, f.destination, f.event_id, f.status, f.event_type, NULL, NULL FROM (
   SELECT n.recorded_at, n.id, n.destination, n.event_id, n.event_type,
          CASE WHEN n.held = 'blocked' THEN 'FAILED' ELSE 'PENDING' END AS status
   FROM later n
   UNION ALL
   (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, 'PUBLISHED' FROM {history} m
    WHERE m.key = :key AND (m.recorded_at, m.id) > (:recorded_at, :id) ORDER BY m.recorded_at, m.id LIMIT :limit)
   UNION ALL
   (SELECT d.recorded_at, d.id, d.destination, d.event_id, d.event_type, 'FAILED' FROM (
      SELECT * FROM {dead_letter} m WHERE m.key = :key ORDER BY m.dead_letter_id DESC LIMIT :scan) d
    WHERE d.id > :id ORDER BY d.id LIMIT :limit)) f
 ORDER BY f.id, f.destination LIMIT :limit)

