-- name: list_events
-- A page of events from one snapshot of hot table, history and dead letters. Each is walked along an index from a position
-- back to a time, for a limited number of rows; the last of these is brought whether it is wanted or not.
-- variant blocked: of_waiting=list_blocked
-- variant in_flight: of_waiting=list_in_flight
-- variant of_key: of_history=list_of_key
-- variant of_type: of_history=list_of_type
WITH hand (event_id, destination) AS MATERIALIZED (
  SELECT DISTINCT json_extract(h.value, '$[0]'), json_extract(h.value, '$[1]')
    FROM {relay} AS r, json_each(r.in_flight) AS h
   WHERE r.lease_until > {now}
), waiting AS (
  SELECT w.*, row_number() OVER (ORDER BY w.recorded_at DESC, w.id DESC, w.destination DESC) AS n,
         CASE WHEN w.held = 'blocked' THEN 'FAILED'
              WHEN EXISTS (SELECT 1 FROM hand AS h
                            WHERE h.event_id = w.event_id AND w.destination IN ('', h.destination)) THEN 'PROCESSING'
              ELSE 'PENDING' END AS status,
         o.next_attempt_at, o.last_error AS outage
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.deferrals, m.last_error, m.last_attempt_at, m.available_at, m.held
            FROM {message} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since {of_waiting}
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :waiting) AS w
    LEFT JOIN {outages} AS o ON o.destination = w.destination AND (w.destination = '' OR w.held IS 'parked' OR w.deferrals > 0)
                           AND coalesce(w.held, '') NOT IN ('blocked', 'waiting')
), delivered AS (
  SELECT h.*, row_number() OVER (ORDER BY h.recorded_at DESC, h.id DESC, h.destination DESC) AS n
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.deferrals, m.last_error, m.last_attempt_at, m.published_at
            FROM {history} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since {of_history}
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :delivered) AS h
), dead AS (
  SELECT d.*, row_number() OVER (ORDER BY d.recorded_at DESC, d.id DESC, d.destination DESC) AS n
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.deferrals, m.error AS last_error, m.last_attempt_at
            FROM {dead_letter} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :dead) AS d
), looked_at AS (
  SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END AS retry_count,
         coalesce(last_error, outage) AS last_error, last_attempt_at,
         CASE WHEN held IS NOT 'blocked' THEN coalesce(available_at, next_attempt_at) END AS next_retry_at,
         NULL AS published_at,
         {list_wanted} AND status = coalesce(:status, status)
           AND (NOT :retrying OR (attempts + deferrals > 0 AND last_attempt_at IS NOT NULL AND status <> 'FAILED')) AS wanted,
         n = :waiting AS edge, n, 1 AS source
    FROM waiting AS m
  UNION ALL
  SELECT recorded_at, id, destination, event_id, 'PUBLISHED', event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, last_error, last_attempt_at, NULL,
         published_at, {list_wanted}, n = :delivered, n, 2
    FROM delivered AS m
  UNION ALL
  SELECT recorded_at, id, destination, event_id, 'FAILED', event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, last_error, last_attempt_at, NULL, NULL,
         {list_wanted}, n = :dead, n, 3
    FROM dead AS m
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY source ORDER BY n) AS rank FROM looked_at WHERE wanted OR edge
)
SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts, retry_count, last_error, last_attempt_at,
       next_retry_at, published_at, wanted, edge
  FROM ranked
 WHERE rank <= :most

-- fragment: list_wanted
-- Is a row of the type, the key, the destination and the aggregate that were asked for, and has it that error?
(m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
 AND m.destination = coalesce(:destination, m.destination)
 AND (:aggregate_type IS NULL OR m.aggregate_type IS :aggregate_type)
 AND (:aggregate_id IS NULL OR m.aggregate_id IS :aggregate_id)
 AND (:error IS NULL OR instr(m.last_error, :error) > 0))

-- fragment: list_blocked
-- Of what waits, only that which holds its key until a person decides.
AND m.held = 'blocked'

-- fragment: list_in_flight
-- Of what waits, only that which a relay has in hand.
AND m.event_id IN (SELECT event_id FROM hand)

-- fragment: list_of_key
-- Of what was delivered, only one key, by its own index.
AND m.key = :key

-- fragment: list_of_type
-- Of what was delivered, only one type, by its own index.
AND m.event_type = :type

-- fragment: replay_wanted
-- Does a replay want a row?
m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
  AND m.destination = coalesce(:destination, m.destination)
  AND m.recorded_at >= :since AND m.recorded_at < :until
  AND CASE WHEN :events IS NULL THEN json_type(m.headers, '$.replayof') IS NULL
           ELSE m.event_id IN (SELECT value FROM json_each(:events)) END
  -- An event goes once to each place, whatever the number of its deliveries.
  AND NOT EXISTS (
    SELECT 1 FROM {history} AS o
     WHERE o.event_id = m.event_id
       AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
       AND o.destination = coalesce(:destination, CASE WHEN :to IS NULL THEN m.destination ELSE o.destination END)
       AND o.recorded_at >= :since AND o.recorded_at < :until)

-- fragment: replay_of_event
-- Of what was delivered, only some events, by their own index.
AND m.event_id IN (SELECT value FROM json_each(:events))

-- fragment: replay_of_key
-- Of what was delivered, only one key, by its own index.
AND m.key = :key

-- fragment: replay_of_type
-- Of what was delivered, only one type, by its own index.
AND m.event_type = :type

-- name: archive_count
-- How much is old enough to go, counted up to a limit; a missing age counts nothing.
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM {history}
                 WHERE published_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:history))
                   AND :history IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {dead_letter}
                 WHERE dead_lettered_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:dead))
                   AND :dead IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {inbox}
                 WHERE received_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:inbox))
                   AND :inbox IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {ledger}
                 WHERE created_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:ledger))
                   AND status <> 'PROCESSING' AND :ledger IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {audit}
                 WHERE at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:audit))
                   AND :audit IS NOT NULL
                 LIMIT :most))

-- name: keys_blocked
-- Keys that stand still: first those whose head waits for a person, then, of so many lines, those whose head waits for its retry
-- with others behind it, the longest first. Hops over the index from line to line; 100,000 heads with nobody behind cost nothing.
WITH RECURSIVE line (key, destination) AS (
  SELECT * FROM (SELECT key, destination FROM {message}
                  WHERE held = 'waiting' AND key IS NOT NULL ORDER BY key, destination, id LIMIT 1)
  UNION ALL
  SELECT b.key, b.destination
    FROM line AS l
   CROSS JOIN {message} AS b
   WHERE b.row_id = coalesce(
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'waiting' AND x.key = l.key AND x.destination > l.destination
             ORDER BY x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'waiting' AND x.key > l.key
             ORDER BY x.key, x.destination, x.id LIMIT 1))
   LIMIT :lines
), retrying AS (
  SELECT m.*, coalesce(m.first_failed_at, m.recorded_at) AS since
    FROM line AS l
   CROSS JOIN {message} AS m
   WHERE m.row_id = (SELECT h.row_id FROM {message} AS h
                      WHERE h.key = l.key AND h.destination = l.destination
                        AND ({holds_queue:h.})
                      ORDER BY h.id LIMIT 1)
     AND m.held IS NULL AND m.available_at > {now}
   ORDER BY since LIMIT :limit
)
SELECT * FROM (
  SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at) AS since,
         (SELECT count(*) FROM (SELECT 1 FROM {message} b WHERE b.key = m.key AND b.destination IN (m.destination, '')
                                 AND b.held = 'waiting' LIMIT :most + 1)) AS waiting,
         NULL AS next_attempt
    FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT :limit)
UNION ALL
SELECT * FROM (
  SELECT r.key, r.destination, r.event_id, r.event_type, r.last_error, r.since,
         (SELECT count(*) FROM (SELECT 1 FROM {message} b WHERE b.key = r.key AND b.destination IN (r.destination, '')
                                 AND b.held = 'waiting' LIMIT :most + 1)),
         r.available_at
    FROM retrying AS r ORDER BY r.since)
LIMIT :limit

-- name: keys_queue
-- What holds a place of a key up on the way to its destination, and the next few behind it, each walked along an index. What nobody
-- has read yet is known by its place only, dead letters by their number: of either, a bounded number is looked at.
WITH later AS (
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND h.destination = :destination AND h.id > :id AND h.held = 'waiting'
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND :destination <> '' AND h.destination = '' AND h.id > :id AND h.held = 'waiting'
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND h.destination IN ('', :destination) AND h.id > :id
                    AND ({holds_queue:h.})
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT r.recorded_at, r.id, r.destination, r.event_id, r.event_type, r.held
                   FROM (SELECT * FROM {message} AS m
                          WHERE m.id > :id AND m.held IS NULL AND m.available_at IS NULL
                          ORDER BY m.id LIMIT :scan) AS r
                  WHERE r.key = :key AND r.destination IN ('', :destination) ORDER BY r.id LIMIT :limit)
)
SELECT * FROM (
  SELECT 1 AS is_head, h.recorded_at, h.id, h.destination, h.event_id, '' AS status, h.event_type, h.held,
         CASE WHEN h.held IS NULL THEN h.available_at END AS next_attempt
    FROM {message} AS h
   WHERE h.key = :key AND (:destination = '' OR h.destination IN ('', :destination)) AND h.id < :id
     AND ({holds_queue:h.})
   ORDER BY h.id LIMIT 1)
UNION ALL
SELECT * FROM (
  SELECT 0, recorded_at, id, destination, event_id, status, event_type, NULL, NULL
    FROM (SELECT recorded_at, id, destination, event_id, event_type,
                 CASE WHEN held = 'blocked' THEN 'FAILED' ELSE 'PENDING' END AS status
            FROM later
          UNION ALL
          SELECT * FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, 'PUBLISHED' FROM {history} AS m
                          WHERE m.key = :key AND (m.recorded_at, m.id) > (:recorded_at, :id)
                          ORDER BY m.recorded_at, m.id LIMIT :limit)
          UNION ALL
          SELECT * FROM (SELECT d.recorded_at, d.id, d.destination, d.event_id, d.event_type, 'FAILED'
                           FROM (SELECT * FROM {dead_letter} AS m WHERE m.key = :key ORDER BY m.dead_letter_id DESC LIMIT :scan) AS d
                          WHERE d.id > :id ORDER BY d.id LIMIT :limit))
   ORDER BY id, destination LIMIT :limit)

-- name: audit_progress
-- An entry of the audit grows by what was done, and so much less is left.
UPDATE {audit}
   SET count = count + :done, detail = json_set(detail, '$.left', json_extract(detail, '$.left') - :done)
 WHERE audit_id = :bulk_action

-- name: add_requests
-- Ask the lane's owner for something, for each event of a list.
INSERT INTO {request} (action, event_id, destination, delay, requested_by, bulk_action_id)
SELECT :action, e.value, json_extract(:destinations, '$[' || e.key || ']'), :delay, :by, :bulk_action
  FROM json_each(:event_ids) AS e
 ORDER BY e.key
RETURNING request_id

-- name: retry_dead_letters
-- Send dead letters again: to the end of their key, attempts at zero. Those whose event is already pending stay.
INSERT OR IGNORE INTO {message} (
  shared_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
SELECT {revived};
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'retry', event_id, json_object('destination', destination, 'dead_letter_id', dead_letter_id)
  FROM {dead_letter}
 WHERE :bulk_action IS NULL AND dead_letter_id IN (SELECT -shared_id FROM {message} WHERE shared_id < 0);
UPDATE {audit} SET {grown}
  FROM (SELECT count(*) AS done FROM {message} WHERE shared_id < 0) AS g
 WHERE audit_id = :bulk_action;
{requeue_revived}

-- fragment: revived
-- Dead letters as pending messages; a place below zero tells which dead letter each was.
-dead_letter_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, 1
  FROM {dead_letter}
 WHERE dead_letter_id IN (SELECT value FROM json_each(:dead_letter_ids))
 ORDER BY id, dead_letter_id

-- fragment: requeue_revived
-- What is pending again is no dead letter any more and goes to the end of its key, where its own row is its place. An
-- operator wants it sent, whatever the ledger says; the one try does the same for the history.
UPDATE {ledger} SET status = 'PROCESSING', send_number = NULL, updated_at = {now}
 WHERE (event_id, destination) IN (SELECT event_id, destination FROM {message} WHERE shared_id < 0);
DELETE FROM {dead_letter} WHERE dead_letter_id IN (SELECT -shared_id FROM {message} WHERE shared_id < 0);
UPDATE {message} SET shared_id = NULL WHERE shared_id < 0;
SELECT changes()

-- fragment: grown
-- The entry of a bulk action grows by what was done, and so much less is left.
count = count + g.done, detail = json_set(detail, '$.left', json_extract(detail, '$.left') - g.done)

-- name: edit_dead_letter
-- Send a dead letter again with another content. If its event is already pending, it stays as it is.
INSERT OR IGNORE INTO {message} (
  shared_id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, deferrals)
SELECT {revived};
UPDATE {message} SET payload = :payload, headers = :headers WHERE shared_id < 0;
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'edit', event_id, :detail FROM {dead_letter} WHERE dead_letter_id IN (SELECT -shared_id FROM {message} WHERE shared_id < 0);
{requeue_revived}

-- name: discard_dead_letters
-- Delete dead letters, and write to the audit who did.
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'discard', event_id, json_object('destination', destination, 'dead_letter_id', dead_letter_id)
  FROM {dead_letter}
 WHERE :bulk_action IS NULL AND dead_letter_id IN (SELECT value FROM json_each(:dead_letter_ids));
UPDATE {audit} SET {grown}
  FROM (SELECT count(*) AS done FROM {dead_letter} WHERE dead_letter_id IN (SELECT value FROM json_each(:dead_letter_ids))) AS g
 WHERE audit_id = :bulk_action;
DELETE FROM {dead_letter} WHERE dead_letter_id IN (SELECT value FROM json_each(:dead_letter_ids));
SELECT changes()

-- name: replay_count
-- How many rows of the history a replay wants, up to a number, among the next so many by the time of recording; the last
-- of these tells where to continue. The search ends as soon as enough are found.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.published_at, m.headers
                          FROM {history} AS m
                         WHERE {replay_recorded} {narrowed}
                         ORDER BY m.recorded_at, m.id, m.destination
                         LIMIT :scan) AS m
                 WHERE {replay_wanted}
                 LIMIT :enough)),
       e.recorded_at, e.id, e.destination
  FROM (SELECT 1) LEFT JOIN (SELECT m.recorded_at, m.id, m.destination
                               FROM {history} AS m
                              WHERE {replay_recorded} {narrowed}
                              ORDER BY m.recorded_at, m.id, m.destination
                              LIMIT 1 OFFSET :scan - 1) AS e

-- fragment: replay_recorded
-- Rows of the history after a position, by the time of recording.
(m.recorded_at, m.id, m.destination) > (:recorded_at, :id, :place) AND m.recorded_at < :until

-- name: replay_next
-- The next rows of the history that a replay wants, in the order of delivery, among so many; then the last of these. The
-- search ends as soon as enough are found.
-- variant of_event: narrowed=replay_of_event
-- variant of_key: narrowed=replay_of_key
-- variant of_type: narrowed=replay_of_type
SELECT *
  FROM (SELECT m.published_at, m.id, m.destination, m.event_id, length(CAST(m.payload AS BLOB)), 1, 0
          FROM (SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at, m.headers,
                       m.payload
                  FROM {history} AS m
                 WHERE {replay_delivered} {narrowed}
                 ORDER BY m.published_at, m.id, m.destination
                 LIMIT :scan) AS m
         WHERE {replay_wanted}
         LIMIT :most)
UNION ALL
SELECT *
  FROM (SELECT m.published_at, m.id, m.destination, m.event_id, 0, 0, 1
          FROM {history} AS m
         WHERE {replay_delivered} {narrowed}
         ORDER BY m.published_at, m.id, m.destination
         LIMIT 1 OFFSET :scan - 1)

-- fragment: replay_delivered
-- Rows of the history after a place, in the order of delivery.
m.published_at >= :published_at AND m.published_at <= :began
AND (m.published_at, m.id, m.destination) > (:published_at, :id, :place)

-- name: replay_copy
-- Copy delivered messages, each to the end of its key, and write how far the replay is, if it is still where the caller
-- says.
INSERT OR IGNORE INTO {message} (
  event_id, destination, {about}, ordering_key, {content}, occurred_at)
SELECT json_extract(:copy_ids, '$[' || i.key || ']'), coalesce(:to, m.destination), m.event_type, m.aggregate_type,
       m.aggregate_id,
       -- The history has the key and not where it came from.
       CASE WHEN m.key IS NOT coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN m.key END,
       m.payload, m.content_type,
       json_set(m.headers, '$.replayof', coalesce(json_extract(m.headers, '$.replayof'), m.event_id)),
       {context:m.}, m.occurred_at
  FROM json_each(:event_ids) AS i
 CROSS JOIN {history} AS m
 WHERE m.event_id = i.value AND m.id = json_extract(:ids, '$[' || i.key || ']')
   AND m.destination = json_extract(:destinations, '$[' || i.key || ']')
   -- By the index of the event id: many events may have been delivered in one millisecond.
   AND +m.published_at = json_extract(:times, '$[' || i.key || ']')
   AND EXISTS (SELECT 1 FROM {audit} AS a WHERE {replay_is_there})
 ORDER BY i.key;
UPDATE {audit} AS a SET count = count + changes(), detail = json_patch(detail, :position)
 WHERE {replay_is_there}
RETURNING at, count, detail

-- fragment: replay_is_there
-- The entry of a replay that is still where the caller says.
a.audit_id = :number AND a.what = 'replay'
AND json_extract(a.detail, '$.after') = json_extract(:was, '$.after')
AND json_extract(a.detail, '$.done') = json_extract(:was, '$.done')

-- name: archive_read_history
-- Old history, whole, by the time it was recorded, within a number and a sum of bytes.
WITH chosen AS MATERIALIZED (
  SELECT rowid AS number, length(CAST(payload AS BLOB)) + length(CAST(headers AS BLOB)) AS size
    FROM {history} INDEXED BY {prefix}history_recorded_idx
   WHERE published_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:older))
     AND (recorded_at, id, destination) > (:recorded_at, :id, :destination)
   ORDER BY recorded_at, id, destination
   LIMIT :limit
)
SELECT id, event_id, destination, 'PUBLISHED', {about}, key, CAST(payload AS BLOB),
       content_type, headers, {context}, occurred_at, recorded_at, published_at,
       seconds, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       last_error, last_attempt_at, NULL, NULL, NULL, NULL, NULL, NULL
  FROM {history}
 WHERE rowid IN (SELECT number FROM ({within_bytes}))
 ORDER BY recorded_at, id, destination

-- name: archive_read_dead
-- Old dead letters, whole, by their number, within a number and a sum of bytes.
WITH chosen AS MATERIALIZED (
  SELECT dead_letter_id AS number, length(CAST(payload AS BLOB)) + length(CAST(headers AS BLOB)) AS size
    FROM {dead_letter}
   WHERE dead_lettered_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:older)) AND dead_letter_id > :dead_letter_id
   ORDER BY dead_letter_id
   LIMIT :limit
)
SELECT id, event_id, destination, 'FAILED', {about}, key, CAST(payload AS BLOB),
       content_type, headers, {context}, occurred_at, recorded_at, NULL, NULL,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END,
       error, last_attempt_at, NULL, NULL, NULL, dead_letter_id, first_failed_at, dead_lettered_at
  FROM {dead_letter}
 WHERE dead_letter_id IN (SELECT number FROM ({within_bytes}))
 ORDER BY dead_letter_id

-- fragment: within_bytes
-- The first of the chosen rows, as many as have so many bytes, and at least one.
SELECT number
  FROM (SELECT number, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS bytes, row_number() OVER (ROWS UNBOUNDED PRECEDING) AS n
          FROM chosen)
 WHERE bytes <= :bytes OR n = 1

-- name: archive_delete_history
-- Delete exactly these rows of the history.
DELETE FROM {history}
 WHERE rowid IN (SELECT h.rowid
                   FROM json_each(:event_ids) AS k
                   JOIN {history} AS h
                     ON h.event_id = k.value AND h.id = json_extract(:ids, '$[' || k.key || ']')
                    AND h.destination = json_extract(:destinations, '$[' || k.key || ']')
                    -- By the index of the event id: many events may have been delivered in one millisecond.
                    AND +h.published_at = json_extract(:times, '$[' || k.key || ']'));
SELECT changes()

-- name: archive_delete_dead
-- Delete exactly these dead letters.
DELETE FROM {dead_letter} WHERE dead_letter_id IN (SELECT value FROM json_each(:dead_letter_ids));
SELECT changes()
