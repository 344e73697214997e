-- name: keys_blocked
-- List keys that are held back: first those for which an operator must decide, then, among :queues ordering queues with waiting
-- messages, those whose first message waits for its retry, the longest wait first. The search hops along the index from queue
-- to queue; retries for which no message waits cost nothing.
WITH RECURSIVE {waiting_queues}, retrying AS {materialized} (
  SELECT m.*, coalesce(m.first_failed_at, m.recorded_at) AS since
    FROM {first_of_queues} AS m
   WHERE m.held IS NULL AND m.available_at > {now}
   ORDER BY since
   LIMIT :limit
)
SELECT * FROM (
  SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at) AS since,
         {waiting_for_first:m.} AS waiting, CAST(NULL AS {time_type}) AS next_attempt
    FROM {message} AS m
   WHERE {is_blocked:m.}
   ORDER BY m.recorded_at DESC, m.id DESC
   LIMIT :limit) AS blocked
UNION ALL
SELECT * FROM (
  SELECT r.key, r.destination, r.event_id, r.event_type, r.last_error, r.since, {waiting_for_first:r.}, r.available_at
    FROM retrying AS r
   ORDER BY r.since) AS retried
LIMIT :limit

-- fragment: waiting_by_subquery
-- How many messages wait for a message of their key, up to one more than :most: those that are held back, and later ones that have
-- no route yet.
(SELECT count(*)
   FROM (SELECT * FROM (SELECT 1 FROM {message} AS b
                         WHERE {in_lane_of_first:row} b.key = {row}"key" AND b.destination IN ({row}destination, '') AND {is_waiting:b.}
                         LIMIT :beyond) AS held_back
         UNION ALL
         SELECT * FROM (SELECT 1 FROM {message} AS b
                         WHERE {in_lane_of_first:row} b.key = {row}"key" AND b.destination = '' AND b.id > {row}id AND ({holds_queue:b.})
                         LIMIT :beyond) AS unrouted
         LIMIT :beyond) AS counted)

-- name: keys_busiest
-- List the keys with the most messages among those that were recorded first.
SELECT "key", count(*)
  FROM (SELECT "key" FROM {message} ORDER BY recorded_at, id LIMIT :most) AS first
 WHERE "key" IS NOT NULL
 GROUP BY "key"
 ORDER BY count(*) DESC, "key"
 LIMIT :limit

-- name: keys_queue
-- Read the message for which position (:recorded_at, :id) of key :key waits on the way to destination :destination, and the
-- next :limit events after it, each along an index. The index of messages that no relay has fetched does not have the key, and
-- that of dead letters not the position: of either, :scan rows are read.
WITH later AS (
  SELECT * FROM (SELECT {queued:h.} FROM {message} AS h
                  WHERE {in_lane_of_key:h.} h.key = :key AND h.destination = :destination AND h.id > :id AND {is_waiting:h.}
                  ORDER BY h.id LIMIT :limit) AS waiting
  UNION ALL
  SELECT * FROM (SELECT {queued:h.} FROM {message} AS h
                  WHERE {in_lane_of_key:h.} h.key = :key AND :destination <> '' AND h.destination = ''
                    AND h.id > :id AND {is_waiting:h.}
                  ORDER BY h.id LIMIT :limit) AS waiting_for_route
  UNION ALL
  SELECT * FROM (SELECT {queued:h.} FROM {message} AS h
                  WHERE {in_lane_of_key:h.} h.key = :key AND h.destination = :destination AND h.id > :id AND ({holds_queue:h.})
                  ORDER BY h.id LIMIT :limit) AS holding
  UNION ALL
  SELECT * FROM (SELECT {queued:h.} FROM {message} AS h
                  WHERE {in_lane_of_key:h.} h.key = :key AND :destination <> '' AND h.destination = ''
                    AND h.id > :id AND ({holds_queue:h.})
                  ORDER BY h.id LIMIT :limit) AS holding_for_route
  UNION ALL
  SELECT * FROM (SELECT {queued:r.}
                   FROM (SELECT * FROM {message} AS h
                          WHERE {in_lane_of_key:h.} h.id > :id AND {is_ready:h.}
                          ORDER BY h.id LIMIT :scan) AS r
                  WHERE r.key = :key AND r.destination IN ('', :destination)
                  ORDER BY r.id LIMIT :limit) AS unfetched
)
SELECT * FROM (
  SELECT true AS is_first, h.recorded_at, h.id, h.destination, h.event_id, '' AS event_state, h.event_type, h.held,
         CASE WHEN h.held IS NULL THEN h.available_at END AS next_attempt
    FROM {message} AS h
   WHERE {in_lane_of_key:h.} h.key = :key AND (:destination = '' OR h.destination IN ('', :destination)) AND h.id < :id
     AND ({holds_queue:h.})
   ORDER BY h.id
   LIMIT 1) AS first
UNION ALL
SELECT * FROM (
  SELECT false, f.recorded_at, f.id, f.destination, f.event_id, f.event_state, f.event_type, CAST(NULL AS {text_type}),
         CAST(NULL AS {time_type})
    FROM (SELECT recorded_at, id, destination, event_id, event_type, event_state
            FROM later
          UNION ALL
          SELECT * FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, 'published' AS event_state
                           FROM {history} AS m
                          WHERE m.key = :key AND {beyond_position}
                          ORDER BY m.recorded_at, m.id LIMIT :limit) AS delivered
          UNION ALL
          SELECT * FROM (SELECT d.recorded_at, d.id, d.destination, d.event_id, d.event_type, 'dead_lettered' AS event_state
                           FROM (SELECT * FROM {dead_letter} AS m
                                  WHERE m.key = :key ORDER BY m.dead_letter_id DESC LIMIT :scan) AS d
                          WHERE d.id > :id
                          ORDER BY d.id LIMIT :limit) AS dead) AS f
   ORDER BY f.id, f.destination
   LIMIT :limit) AS later_events

-- fragment: queued
-- What a list of neighbours shows of a pending message.
{row}recorded_at, {row}id, {row}destination, {row}event_id, {row}event_type, {stored_state:row} AS event_state
