-- A page of events from one snapshot of hot table, history and dead letters. Each is walked along an index from a position
-- back to a time, for a limited number of rows; the last of these is brought whether it is wanted or not.
WITH hand (event_id, destination) AS MATERIALIZED (
  SELECT DISTINCT json_extract(h.value, '$[0]'), json_extract(h.value, '$[1]')
    FROM {relay} AS r, json_each(r.in_hand) AS h
   WHERE r.lease_until > {now}
), waiting AS (
  SELECT w.*, row_number() OVER (ORDER BY w.recorded_at DESC, w.id DESC, w.destination DESC) AS n,
         CASE WHEN w.held = 'blocked' THEN 'FAILED'
              WHEN EXISTS (SELECT 1 FROM hand AS h
                            WHERE h.event_id = w.event_id AND w.destination IN ('', h.destination)) THEN 'PROCESSING'
              ELSE 'PENDING' END AS status,
         o.next_try_at, o.last_error AS outage
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.tries, m.last_error, m.last_attempt_at, m.available_at, m.held
            FROM {message} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since {of_waiting}
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :waiting) AS w
    LEFT JOIN {outage} AS o ON o.destination = w.destination AND (w.destination = '' OR w.held IS 'aside' OR w.tries > 0)
                           AND coalesce(w.held, '') NOT IN ('blocked', 'behind')
), delivered AS (
  SELECT h.*, row_number() OVER (ORDER BY h.recorded_at DESC, h.id DESC, h.destination DESC) AS n
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.tries, m.last_error, m.last_attempt_at, m.published_at
            FROM {history} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since {of_history}
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :delivered) AS h
), dead AS (
  SELECT d.*, row_number() OVER (ORDER BY d.recorded_at DESC, d.id DESC, d.destination DESC) AS n
    FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id,
                 m.attempts, m.tries, m.error AS last_error, m.last_attempt_at
            FROM {dead} AS m
           WHERE (m.recorded_at, m.id, m.destination) < (:recorded_at, :id, :place) AND m.recorded_at >= :since
           ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC
           LIMIT :dead) AS d
), looked_at AS (
  SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END AS retry_count,
         coalesce(last_error, outage) AS last_error, last_attempt_at,
         CASE WHEN held IS NOT 'blocked' THEN coalesce(available_at, next_try_at) END AS next_retry_at,
         NULL AS published_at,
         {wanted} AND status = coalesce(:status, status)
           AND (NOT :retrying OR (attempts + tries > 0 AND last_attempt_at IS NOT NULL AND status <> 'FAILED')) AS wanted,
         n = :waiting AS edge, n, 1 AS source
    FROM waiting AS m
  UNION ALL
  SELECT recorded_at, id, destination, event_id, 'PUBLISHED', event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END, last_error, last_attempt_at, NULL,
         published_at, {wanted}, n = :delivered, n, 2
    FROM delivered AS m
  UNION ALL
  SELECT recorded_at, id, destination, event_id, 'FAILED', event_type, key, attempts,
         CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END, last_error, last_attempt_at, NULL, NULL,
         {wanted}, n = :dead, n, 3
    FROM dead AS m
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY source ORDER BY n) AS rank FROM looked_at WHERE wanted OR edge
)
SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts, retry_count, last_error, last_attempt_at,
       next_retry_at, published_at, wanted, edge
  FROM ranked
 WHERE rank <= :most;
