-- name: replay_find
-- Read a replay by its number.
-- variant locked: lock=for_update
SELECT at, count, detail{as_text} FROM {audit} WHERE audit_id = :number AND what = 'replay' {lock}

-- name: replay_count
-- Count the rows of the history that a replay wants, up to :most, among the next :scan rows after position (:recorded_at, :id,
-- :after_destination) by the time of recording; the last of these tells where to continue. The scan ends once enough are found.
-- with: scan_conditions=replay_recorded scan_order=replay_recording_order scan_size=0
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT count(CASE WHEN wanted THEN 1 END), max(CASE WHEN edge THEN recorded_at END), max(CASE WHEN edge THEN id END),
       max(CASE WHEN edge THEN destination END)
  FROM ({scan_of_history}) AS scanned

-- fragment: replay_recorded
-- After position (:recorded_at, :id, :after_destination) by the time of recording; see list_from_position. No event is delivered before it
-- is recorded: the first condition lets PostgreSQL leave out days.
{unindexed}m.published_at >= :since AND {at_or_after:recorded_at}
AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination > :after_destination) AND m.recorded_at < :until

-- fragment: replay_recording_order
-- The order of recording.
m.recorded_at, m.id, m.destination

-- name: replay_next
-- Read the next rows of the history that a replay wants, in the order of delivery, up to :most, among the next :scan rows after
-- position (:published_at, :id, :after_destination) up to time :began; the last of these tells where to continue. The scan ends once
-- enough are found.
-- with: scan_conditions=replay_delivered scan_order=replay_delivery_order scan_size=replay_size
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT published_at, id, destination, event_id, size, wanted, edge FROM ({scan_of_history}) AS scanned

-- fragment: replay_delivered
-- After position (:published_at, :id, :after_destination) in the order of delivery; see list_from_position. The first condition lets
-- PostgreSQL leave out days.
m.published_at >= :published_at AND {at_or_after:published_at}
AND ((m.published_at, m.id) <> (:published_at, :id) OR m.destination > :after_destination) AND m.published_at <= :began

-- fragment: replay_delivery_order
-- The order of delivery.
m.published_at, m.id, m.destination

-- fragment: replay_size
-- The bytes that a copy adds.
{size_of_payload:m.}

-- fragment: replay_wanted
-- Whether a replay wants a row: by type, key, destination, time of recording and event ids. A copy is replayed by its id only.
-- :to tells whether all copies go to one destination.
m.event_type = coalesce(:type, m.event_type) AND (CAST(:key AS {text_type}) IS NULL OR coalesce(m.key = :key, false))
AND m.destination = coalesce(:destination, m.destination) AND m.recorded_at >= :since AND m.recorded_at < :until
AND CASE WHEN {events_are_any} THEN NOT m.copy ELSE m.event_id {among_texts:events} END
-- An event goes to each destination once, however often it was delivered there.
AND NOT EXISTS (
  SELECT 1 FROM {history} AS o
   WHERE o.event_id = m.event_id AND {unindexed}o.published_at <= m.published_at
     AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
     AND o.destination = coalesce(:destination, CASE WHEN CAST(:to AS {text_type}) IS NULL THEN m.destination ELSE o.destination END)
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
{insert_new} INTO {message} (event_id, destination, {about}, ordering_key, {content}, occurred_at)
SELECT {copy_id}, coalesce(:to, m.destination), {about:m.},
       CASE WHEN m.key = coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN NULL ELSE m.key END,
       m.payload, m.content_type, {headers_with_original}, {context:m.}, m.occurred_at
  FROM {deliveries}
 CROSS JOIN {history} AS m
 WHERE m.event_id = i.event_id AND m.id = i.id AND m.destination = i.destination
   AND {unindexed}m.published_at = i.published_at
 ORDER BY i.n
{skip_existing}
RETURNING event_id

-- name: replay_progress
-- Count copies in the entry of a replay, and store its new position.
UPDATE {audit} SET count = count + CAST(:copied AS {integer_type}), detail = :detail{as_json} WHERE audit_id = :number
