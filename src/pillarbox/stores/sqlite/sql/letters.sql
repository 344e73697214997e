-- A page of dead letters, the newest first, for a limited number of rows; the last of these is brought whether it is wanted
-- or not.
SELECT dead_id, event_id, destination, event_type, key, error, attempts, recorded_at, first_failed_at, died_at, wanted, edge
  FROM (SELECT m.*, n = :walk AS edge,
               m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
                 AND m.destination = coalesce(:destination, m.destination) AND m.died_at >= :since
                 AND (:error IS NULL OR instr(m.error, :error) > 0)
                 AND m.event_id = coalesce(:event_id, m.event_id) AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.dead_id DESC) AS n
                  FROM (SELECT m.dead_id, m.event_id, m.destination, m.event_type, m.key, m.error, m.attempts, m.recorded_at,
                               m.first_failed_at, m.died_at
                          FROM {dead} AS m
                         WHERE m.dead_id < :before {narrowed}
                         ORDER BY m.dead_id DESC
                         LIMIT :walk) AS l) AS m)
 WHERE wanted OR edge
 ORDER BY dead_id DESC
 LIMIT :most;
