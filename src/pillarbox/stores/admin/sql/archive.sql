-- name: archive_count
-- Count the rows past their retention periods, up to a limit; without a retention period no row counts.
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM {history}
                 WHERE published_at <= {ago:history}
                 LIMIT :most) AS history),
       (SELECT count(*)
          FROM (SELECT 1 FROM {dead_letter}
                 WHERE dead_lettered_at <= {ago:dead}
                 LIMIT :most) AS dead),
       (SELECT count(*)
          FROM (SELECT 1 FROM {inbox}
                 WHERE received_at <= {ago:inbox}
                 LIMIT :most) AS inbox),
       (SELECT count(*)
          FROM (SELECT 1 FROM {ledger}
                 WHERE created_at <= {ago:ledger} AND status <> 'PROCESSING'
                 LIMIT :most) AS ledger),
       (SELECT count(*)
          FROM (SELECT 1 FROM {audit}
                 WHERE at <= {ago:audit}
                 LIMIT :most) AS audit)

-- name: expired_inbox_records
-- Count the inbox records past their retention period by consumer, among :most of them.
SELECT consumer, count(*)
  FROM (SELECT consumer FROM {inbox}
         WHERE received_at <= {ago:inbox}
         LIMIT :most) AS expired
 GROUP BY consumer
 ORDER BY consumer

-- name: archive_read_history
-- Read old history in full, in the order of recording, up to a number of rows and a sum of bytes. Sizes come first, so that the
-- window holds no payloads.
WITH chosen AS {materialized} (
  SELECT m.recorded_at, m.id, m.destination, m.published_at, {size_of_message:m.} AS size
    FROM {history} AS m
   WHERE {unindexed}m.published_at <= {ago:older}
     AND {at_or_after:recorded_at}
     AND ((m.recorded_at, m.id) <> (:recorded_at, :id) OR m.destination > :destination)
   ORDER BY m.recorded_at, m.id, m.destination
   LIMIT :limit
), fitting AS {materialized} (
  SELECT recorded_at, id, destination, published_at
    FROM (SELECT c.*, sum(size) OVER (w ROWS UNBOUNDED PRECEDING) AS bytes, row_number() OVER w AS n
            FROM chosen AS c
          WINDOW w AS (ORDER BY recorded_at, id, destination)) AS summed
   WHERE bytes <= :bytes OR n = 1
)
SELECT m.id, m.event_id, m.destination, 'published', {about:m.}, m.key, {payload_bytes:m.}, m.content_type, m.headers{as_text},
       {context:m.}, m.occurred_at, m.recorded_at, m.published_at, m.seconds, m.attempts,
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END, m.last_error, m.last_attempt_at,
       NULL, NULL, NULL, NULL, NULL, NULL
  FROM fitting AS f
 CROSS JOIN {history} AS m
 WHERE m.recorded_at = f.recorded_at AND m.id = f.id AND m.destination = f.destination
   AND {unindexed}m.published_at = f.published_at
 ORDER BY m.recorded_at, m.id, m.destination

-- name: archive_read_dead
-- Read old dead letters in full, by their numbers, up to a number of rows and a sum of bytes. Sizes come first, so that the
-- window holds no payloads.
WITH chosen AS {materialized} (
  SELECT m.dead_letter_id, {size_of_message:m.} AS size
    FROM {dead_letter} AS m
   WHERE {unindexed}m.dead_lettered_at <= {ago:older} AND m.dead_letter_id > :dead_letter_id
   ORDER BY m.dead_letter_id
   LIMIT :limit
), fitting AS {materialized} (
  SELECT dead_letter_id
    FROM (SELECT c.*, sum(size) OVER (w ROWS UNBOUNDED PRECEDING) AS bytes, row_number() OVER w AS n
            FROM chosen AS c
          WINDOW w AS (ORDER BY dead_letter_id)) AS summed
   WHERE bytes <= :bytes OR n = 1
)
SELECT m.id, m.event_id, m.destination, 'dead_lettered', {about:m.}, m.key, {payload_bytes:m.}, m.content_type, m.headers{as_text},
       {context:m.}, m.occurred_at, m.recorded_at, NULL, NULL, m.attempts,
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END, m.error, m.last_attempt_at,
       NULL, NULL, NULL, m.dead_letter_id, m.first_failed_at, m.dead_lettered_at
  FROM fitting AS f
 CROSS JOIN {dead_letter} AS m
 WHERE m.dead_letter_id = f.dead_letter_id
 ORDER BY m.dead_letter_id

-- name: archive_delete_history
-- Delete exactly these rows of the history.
{delete_deliveries}

-- name: delete_attempts
-- Delete the failed sends of these events: an error may contain data of the event.
DELETE FROM {attempt} WHERE event_id {among_texts:event_ids}
