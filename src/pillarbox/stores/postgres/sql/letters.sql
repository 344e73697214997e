-- A page of dead letters, the newest first: at most $8 rows are looked at from number $1 on; the last of these is brought
-- whether it is wanted or not.
SELECT m.dead_id, m.event_id, m.destination, m.event_type, m.key, m.error, m.attempts, m.recorded_at, m.first_failed_at,
       m.died_at, w.wanted, m.n = $8 AS edge
FROM (SELECT m.*, row_number() OVER (ORDER BY m.dead_id DESC) AS n FROM (
        SELECT m.dead_id, m.event_id, m.destination, m.event_type, m.key, m.error, m.attempts, m.recorded_at,
               m.first_failed_at, m.died_at
        FROM {dead} m WHERE m.dead_id < $1 {narrowed} ORDER BY m.dead_id DESC LIMIT $8) m) m
CROSS JOIN LATERAL (SELECT
  m.event_type = coalesce($2, m.event_type) AND ($3::text IS NULL OR m.key = $3)
  AND m.destination = coalesce($4, m.destination) AND m.died_at >= $5
  AND ($6::text IS NULL OR strpos(m.error, $6) > 0) AND m.event_id = coalesce($9, m.event_id)) AS w(wanted)
WHERE w.wanted OR m.n = $8 ORDER BY m.n LIMIT $7
