-- The history in the order of delivery, as far as one look goes, and whether a replay wants each; the reader stops early.
SELECT m.published_at, m.id, m.destination, m.event_id, length(CAST(m.payload AS BLOB)),
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
  FROM {history} AS m
 WHERE m.published_at >= :published_at AND m.published_at <= :began
   AND (m.published_at, m.id, m.destination) > (:published_at, :id, :place) {narrowed}
 ORDER BY m.published_at, m.id, m.destination
 LIMIT :look;
