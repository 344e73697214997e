-- How many of the history a replay wants, up to $12: at most $11 rows are looked at from behind position ($1, $2, $3), by the
-- time of recording; the last of these says where to go on.
SELECT count(*) FILTER (WHERE wanted), max(recorded_at) FILTER (WHERE edge), max(id) FILTER (WHERE edge),
       max(destination) FILTER (WHERE edge)
FROM (SELECT m.recorded_at, m.id, m.destination, w.wanted, m.n = $11 AS edge
      FROM (SELECT m.*, row_number() OVER (ORDER BY m.recorded_at, m.id, m.destination) AS n FROM (
              SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.published_at,
                     m.headers ? 'replayof' AS copy
              FROM {history} m
              -- Nothing is delivered before it is recorded: so days can be left out. Where to go on: see browse_from_position.
              WHERE m.published_at >= $7 AND (m.recorded_at, m.id) >= ($1, $2)
                AND ((m.recorded_at, m.id) <> ($1, $2) OR m.destination > $3) AND m.recorded_at < $8 {narrowed}
              ORDER BY m.recorded_at, m.id, m.destination LIMIT $11) m) m
      CROSS JOIN LATERAL (SELECT {wanted}) AS w(wanted)
      WHERE w.wanted OR m.n = $11 ORDER BY m.recorded_at, m.id, m.destination LIMIT $12) AS looked_at
