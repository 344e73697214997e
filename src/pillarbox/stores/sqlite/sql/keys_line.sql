-- What holds a place of a key up on the way to its destination, and the next few behind it, each walked along an index. What nobody
-- has read yet is known by its place only, dead letters by their number: of either, a bounded number is looked at.
WITH later AS (
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND h.destination = :destination AND h.id > :id AND h.held = 'behind'
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND :destination <> '' AND h.destination = '' AND h.id > :id AND h.held = 'behind'
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} AS h
                  WHERE h.key = :key AND h.destination IN ('', :destination) AND h.id > :id
                    AND (h.held IN ('aside', 'blocked')
                         OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
                  ORDER BY h.id LIMIT :limit)
  UNION ALL
  SELECT * FROM (SELECT r.recorded_at, r.id, r.destination, r.event_id, r.event_type, r.held
                   FROM (SELECT * FROM {message} AS m
                          WHERE m.id > :id AND m.held IS NULL AND m.available_at IS NULL
                          ORDER BY m.id LIMIT :walk) AS r
                  WHERE r.key = :key AND r.destination IN ('', :destination) ORDER BY r.id LIMIT :limit)
)
SELECT * FROM (
  SELECT 1 AS is_head, h.recorded_at, h.id, h.destination, h.event_id, '' AS status, h.event_type, h.held,
         CASE WHEN h.held IS NULL THEN h.available_at END AS next_try
    FROM {message} AS h
   WHERE h.key = :key AND (:destination = '' OR h.destination IN ('', :destination)) AND h.id < :id
     AND (h.held IN ('aside', 'blocked') OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
   ORDER BY h.id LIMIT 1)
UNION ALL
SELECT * FROM (
  SELECT 0, recorded_at, id, destination, event_id, status, event_type, NULL, NULL
    FROM (SELECT recorded_at, id, destination, event_id, event_type,
                 CASE WHEN held = 'blocked' THEN 'FAILED' ELSE 'PENDING' END AS status
            FROM later
          UNION ALL
          SELECT * FROM (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, 'PUBLISHED' FROM {history} AS m
                          WHERE m.key = :key AND (m.recorded_at, m.id) > (:recorded_at, :id)
                          ORDER BY m.recorded_at, m.id LIMIT :limit)
          UNION ALL
          SELECT * FROM (SELECT d.recorded_at, d.id, d.destination, d.event_id, d.event_type, 'FAILED'
                           FROM (SELECT * FROM {dead} AS m WHERE m.key = :key ORDER BY m.dead_id DESC LIMIT :walk) AS d
                          WHERE d.id > :id ORDER BY d.id LIMIT :limit))
   ORDER BY id, destination LIMIT :limit);
