-- A page of events from one snapshot of hot table, history and dead letters. Each is walked along an index from position
-- ($1, $2, $3) back to time $4, for at most $11, $12 and $13 rows; the last of these is brought whether it is wanted or not.
WITH hand AS MATERIALIZED (
  SELECT DISTINCT x.event_id, x.destination
  FROM {relay} r, jsonb_to_recordset(r.in_hand) AS x(event_id text, destination text) WHERE r.lease_until > now()
), waiting AS (
  SELECT w.*, d.next_try_at, d.last_error AS outage, CASE WHEN w.held = 'blocked' THEN 'FAILED' WHEN h.event_id IS NOT NULL THEN 'PROCESSING'
                                  ELSE 'PENDING' END AS status
  FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
          SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
                 m.tries, m.last_error, m.last_attempt_at, m.available_at, m.held
          FROM {message} m
          WHERE {from_position} AND m.recorded_at >= $4 {of_waiting}
          ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT $11) m) w
  LEFT JOIN hand h ON h.event_id = w.event_id AND h.destination = w.destination
  LEFT JOIN {outage} d ON d.destination = w.destination AND (w.destination = '' OR w.held = 'aside' OR w.tries > 0)
                      AND w.held IS DISTINCT FROM 'blocked' AND w.held IS DISTINCT FROM 'behind'
), delivered AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
    SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
           m.tries, m.last_error, m.last_attempt_at, m.published_at
    FROM {history} m
    WHERE {from_position} AND m.recorded_at >= $4 {of_history}
    ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT $12) m
), dead AS (
  SELECT m.*, row_number() OVER (ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC) AS n FROM (
    SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.aggregate_type, m.aggregate_id, m.attempts,
           m.tries, m.error AS last_error, m.last_attempt_at
    FROM {dead} m
    WHERE {from_position} AND m.recorded_at >= $4
    ORDER BY m.recorded_at DESC, m.id DESC, m.destination DESC LIMIT $13) m
)
SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts,
       CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END AS retry_count, last_error, last_attempt_at, next_retry_at,
       published_at, wanted, edge
FROM (
  (SELECT recorded_at, id, destination, event_id, status, event_type, key, attempts, tries,
          coalesce(last_error, outage) AS last_error, last_attempt_at,
          CASE WHEN held IS DISTINCT FROM 'blocked' THEN coalesce(available_at, next_try_at) END AS next_retry_at,
          NULL::timestamptz AS published_at, wanted, n = $11 AS edge
   FROM waiting m CROSS JOIN LATERAL (SELECT {wanted} AND status = coalesce($5, status)
     AND (NOT $9 OR (attempts + tries > 0 AND last_attempt_at IS NOT NULL AND status <> 'FAILED'))) AS w(wanted)
   WHERE wanted OR n = $11 ORDER BY n LIMIT $10)
  UNION ALL
  (SELECT recorded_at, id, destination, event_id, 'PUBLISHED', event_type, key, attempts, tries, last_error,
          last_attempt_at, NULL, published_at, wanted, n = $12
   FROM delivered m CROSS JOIN LATERAL (SELECT {wanted}) AS w(wanted) WHERE wanted OR n = $12 ORDER BY n LIMIT $10)
  UNION ALL
  (SELECT recorded_at, id, destination, event_id, 'FAILED', event_type, key, attempts, tries, last_error, last_attempt_at, NULL,
          NULL, wanted, n = $13
   FROM dead m CROSS JOIN LATERAL (SELECT {wanted}) AS w(wanted) WHERE wanted OR n = $13 ORDER BY n LIMIT $10)
) AS found
