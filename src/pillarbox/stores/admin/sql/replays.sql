-- name: replay_find
-- Read a replay by its number.
-- variant locked: lock=for_update
SELECT at, count, detail{as_text} FROM {audit} WHERE audit_id = :number AND what = 'replay' {lock}

-- name: replay_count
-- Count the rows of the history that a replay wants, up to :enough, among the next :scan rows after position (:recorded_at,
-- :id, :place) by the time of recording; the last of these tells where to continue. The scan ends once enough are found.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT count(CASE WHEN wanted THEN 1 END), max(CASE WHEN edge THEN recorded_at END), max(CASE WHEN edge THEN id END),
       max(CASE WHEN edge THEN destination END)
  FROM (SELECT * FROM (
          SELECT m.recorded_at, m.id, m.destination, {replay_wanted} AS wanted, m.n = :scan AS edge
            FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at, m.id, m.destination) AS n
                    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.published_at,
                                 {is_copy:m.} AS copy
                            FROM {history} AS m
                           -- No event is delivered before it is recorded: so PostgreSQL can leave out days.
                           WHERE m.published_at >= :since AND {replay_from_position} AND m.recorded_at < :until {narrowed}
                           ORDER BY m.recorded_at, m.id, m.destination
                           LIMIT :scan) AS m) AS m) AS m
         WHERE wanted OR edge
         ORDER BY recorded_at, id, destination
         LIMIT :enough) AS scanned

-- fragment: replay_from_position
-- From position (:recorded_at, :id, :place) on; see list_from_position.
(m.recorded_at, m.id) >= (:recorded_at, :id) AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination > :place)

-- name: replay_next
-- Read the next rows of the history that a replay wants, in the order of delivery: at most :scan rows after position
-- (:published_at, :id, :place) up to time :began; the last of these is returned whether it is wanted or not.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT published_at, id, destination, event_id, size, wanted, edge
  FROM (SELECT m.published_at, m.id, m.destination, m.event_id, m.size, {replay_wanted} AS wanted, m.n = :scan AS edge
          FROM (SELECT m.*, row_number() OVER (ORDER BY m.published_at, m.id, m.destination) AS n
                  FROM (SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at,
                               {is_copy:m.} AS copy, {size_of_payload:m.} AS size
                          FROM {history} AS m
                         -- The first condition tells PostgreSQL which days to leave out. For the next two see
                         -- list_from_position.
                         WHERE m.published_at >= :published_at AND (m.published_at, m.id) >= (:published_at, :id)
                           AND ((m.published_at, m.id) <> (:published_at, :id) OR m.destination > :place)
                           AND m.published_at <= :began {narrowed}
                         ORDER BY m.published_at, m.id, m.destination
                         LIMIT :scan) AS m) AS m) AS m
 -- In the order of the scan: no sort, and the limit ends the scan early.
 WHERE wanted OR edge
 ORDER BY published_at, id, destination
 LIMIT :most

-- fragment: replay_wanted
-- Whether a replay wants a row: by type, key, destination, time of recording and event ids. A copy is replayed by its id only.
-- :to tells whether all copies go to one destination.
m.event_type = coalesce(:type, m.event_type) AND (CAST(:key AS text) IS NULL OR coalesce(m.key = :key, false))
AND m.destination = coalesce(:destination, m.destination) AND m.recorded_at >= :since AND m.recorded_at < :until
AND CASE WHEN {events_are_any} THEN NOT m.copy ELSE m.event_id {among_texts:events} END
-- An event goes to each destination once, however often it was delivered there.
AND NOT EXISTS (
  SELECT 1 FROM {history} AS o
   WHERE o.event_id = m.event_id AND {unindexed}o.published_at <= m.published_at
     AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
     AND o.destination = coalesce(:destination, CASE WHEN CAST(:to AS text) IS NULL THEN m.destination ELSE o.destination END)
     AND o.recorded_at >= :since AND o.recorded_at < :until)

-- fragment: replay_of_event
-- Of delivered messages, only these events, by their own index.
AND m.event_id {among_texts:events}

-- fragment: replay_of_key
-- Of delivered messages, only one key, by its own index.
AND m.key = :key

-- fragment: replay_of_type
-- Of delivered messages, only one type, by its own index.
AND m.event_type = :type

-- name: replay_copy
-- Copy delivered messages, each to the end of its key. The history has the key of a message, and not where the key came from.
INSERT INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at)
SELECT {copy_id}, coalesce(:to, m.destination), {about:m.},
       CASE WHEN m.key = coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN NULL ELSE m.key END,
       m.payload, m.content_type, {headers_with_original}, {context:m.}, m.occurred_at
  FROM {deliveries}
 CROSS JOIN {history} AS m
 WHERE m.event_id = i.event_id AND m.id = i.id AND m.destination = i.destination
   AND {unindexed}m.published_at = i.published_at
 ORDER BY i.n
ON CONFLICT DO NOTHING
RETURNING event_id

-- name: replay_progress
-- Count copies in the entry of a replay, and store its new position.
UPDATE {audit} SET count = count + CAST(:copied AS integer), detail = :detail{as_json} WHERE audit_id = :number
