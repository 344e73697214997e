-- The next of the history that a replay wants, in the order of delivery, for a limited number of rows; the last of these is
-- brought whether it is wanted or not.
SELECT published_at, id, destination, event_id, size, wanted, edge
  FROM (SELECT m.*, n = :look AS edge,
               m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
                 AND m.destination = coalesce(:destination, m.destination)
                 AND m.recorded_at >= :since AND m.recorded_at < :until
                 AND CASE WHEN :events IS NULL THEN NOT m.copy
                          ELSE m.event_id IN (SELECT value FROM json_each(:events)) END
                 -- An event goes once to each place, whatever the number of its deliveries.
                 AND NOT EXISTS (
                   SELECT 1 FROM {history} AS o
                    WHERE o.event_id = m.event_id
                      AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
                      AND o.destination = coalesce(:destination, CASE WHEN :to IS NULL THEN m.destination ELSE o.destination END)
                      AND o.recorded_at >= :since AND o.recorded_at < :until) AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.published_at, l.id, l.destination) AS n
                  FROM (SELECT m.published_at, m.id, m.destination, m.event_id, m.event_type, m.key, m.recorded_at,
                               json_type(m.headers, '$.replayof') IS NOT NULL AS copy, length(CAST(m.payload AS BLOB)) AS size
                          FROM {history} AS m
                         WHERE m.published_at >= :published_at AND m.published_at <= :began
                           AND (m.published_at, m.id, m.destination) > (:published_at, :id, :place) {narrowed}
                         ORDER BY m.published_at, m.id, m.destination
                         LIMIT :look) AS l) AS m)
 WHERE wanted OR edge
 ORDER BY n
 LIMIT :most;
