-- The next of the history that a replay wants, in the order of delivery: at most $11 rows are looked at from behind place
-- ($1, $2, $3) up to time $4; the last of these is brought whether it is wanted or not.
SELECT m.published_at, m.id, m.destination, m.event_id, m.size, w.wanted, m.n = $11 AS edge
FROM (SELECT m.*, row_number() OVER (ORDER BY m.published_at, m.id, m.destination) AS n FROM (
        SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at,
               m.headers ? 'replayof' AS copy, octet_length(m.payload) AS size
        FROM {history} m
        -- The first of the two says which days can be left out.
        WHERE m.published_at >= $1 AND (m.published_at, m.id, m.destination) > ($1, $2, $3) AND m.published_at <= $4 {narrowed}
        ORDER BY m.published_at, m.id, m.destination LIMIT $11) m) m
CROSS JOIN LATERAL (SELECT
  m.event_type = coalesce($5, m.event_type) AND ($6::text IS NULL OR m.key = $6)
  AND m.destination = coalesce($7, m.destination) AND m.recorded_at >= $8 AND m.recorded_at < $9
  AND CASE WHEN $10::text[] IS NULL THEN NOT m.copy ELSE m.event_id = ANY ($10::text[]) END
  -- An event goes once to each place, whatever the number of its deliveries.
  AND NOT EXISTS (
    SELECT FROM {history} o
    WHERE o.event_id = m.event_id AND o.published_at <= m.published_at
      AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
      AND o.destination = coalesce($7, CASE WHEN $13::boolean THEN o.destination ELSE m.destination END)
      AND o.recorded_at >= $8 AND o.recorded_at < $9)) AS w(wanted)
-- In the order of the look: no sort, and the limit ends it early.
WHERE w.wanted OR m.n = $11 ORDER BY m.published_at, m.id, m.destination LIMIT $12
