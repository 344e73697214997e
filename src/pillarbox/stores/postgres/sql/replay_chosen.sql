-- The next of the history that a replay wants, in the order of delivery: at most $11 rows are looked at from behind place
-- ($1, $2, $3) up to time $13; the last of these is brought whether it is wanted or not.
SELECT m.published_at, m.id, m.destination, m.event_id, m.size, w.wanted, m.n = $11 AS edge
FROM (SELECT m.*, row_number() OVER (ORDER BY m.published_at, m.id, m.destination) AS n FROM (
        SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at,
               m.headers ? 'replayof' AS copy, octet_length(m.payload) AS size
        FROM {history} m
        -- The first says which days can be left out, the two after it where to go on: see browse_from_position.
        WHERE m.published_at >= $1 AND (m.published_at, m.id) >= ($1, $2)
          AND ((m.published_at, m.id) <> ($1, $2) OR m.destination > $3) AND m.published_at <= $13 {narrowed}
        ORDER BY m.published_at, m.id, m.destination LIMIT $11) m) m
CROSS JOIN LATERAL (SELECT {wanted}) AS w(wanted)
-- In the order of the look: no sort, and the limit ends it early.
WHERE w.wanted OR m.n = $11 ORDER BY m.published_at, m.id, m.destination LIMIT $12
