-- The history in the order of delivery, as far as one look goes, and whether a replay wants each; the reader stops early.
SELECT m.published_at, m.id, m.destination, m.event_id, length(CAST(m.payload AS BLOB)), {wanted}
  FROM {history} AS m
 WHERE m.published_at >= :published_at AND m.published_at <= :began
   AND (m.published_at, m.id, m.destination) > (:published_at, :id, :place) {narrowed}
 ORDER BY m.published_at, m.id, m.destination
 LIMIT :look;
