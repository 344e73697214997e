-- What holds place ($2, $3) of key $1 up on the way to destination $4, and the next $5 behind it, each walked along an index.
-- What nobody has read yet is known by its lane only, dead letters by their number: of either, $6 are looked at.
WITH line AS (
  SELECT DISTINCT d.destination, (hashtext($1) & 63)::smallint AS lane FROM unnest(ARRAY['', $4::text]) AS d(destination)
), later AS (
  SELECT n.* FROM line l CROSS JOIN LATERAL (
    (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} h
     WHERE h.lane = l.lane AND h.key = $1 AND h.destination = l.destination AND h.id > $3 AND h.held = 'behind'
     ORDER BY h.id LIMIT $5)
    UNION ALL
    (SELECT h.recorded_at, h.id, h.destination, h.event_id, h.event_type, h.held FROM {message} h
     WHERE h.lane = l.lane AND h.key = $1 AND h.destination = l.destination AND h.id > $3 AND ({is_head})
     ORDER BY h.id LIMIT $5)) n
  UNION ALL
  (SELECT r.recorded_at, r.id, r.destination, r.event_id, r.event_type, r.held FROM (
     SELECT * FROM {message} m
     WHERE m.lane = (SELECT lane FROM line LIMIT 1) AND m.id > $3 AND m.held IS NULL AND m.available_at IS NULL
     ORDER BY m.id LIMIT $6) r
   WHERE r.key = $1 AND r.destination IN ('', $4) ORDER BY r.id LIMIT $5)
)
(SELECT true AS is_head, h.recorded_at, h.id, h.destination, h.event_id, '' AS status, h.event_type, h.held,
        CASE WHEN h.held IS NULL THEN h.available_at END AS next_try
 FROM {message} h
 WHERE h.lane = (SELECT lane FROM line LIMIT 1) AND h.key = $1 AND ($4 = '' OR h.destination IN ('', $4)) AND h.id < $3
   AND ({is_head})
 ORDER BY h.id LIMIT 1)
UNION ALL
(SELECT false, f.recorded_at, f.id, f.destination, f.event_id, f.status, f.event_type, NULL, NULL FROM (
   SELECT n.recorded_at, n.id, n.destination, n.event_id, n.event_type,
          CASE WHEN n.held = 'blocked' THEN 'FAILED' ELSE 'PENDING' END AS status
   FROM later n
   UNION ALL
   (SELECT m.recorded_at, m.id, m.destination, m.event_id, m.event_type, 'PUBLISHED' FROM {history} m
    WHERE m.key = $1 AND (m.recorded_at, m.id) > ($2, $3) ORDER BY m.recorded_at, m.id LIMIT $5)
   UNION ALL
   (SELECT d.recorded_at, d.id, d.destination, d.event_id, d.event_type, 'FAILED' FROM (
      SELECT * FROM {dead} m WHERE m.key = $1 ORDER BY m.dead_id DESC LIMIT $6) d
    WHERE d.id > $3 ORDER BY d.id LIMIT $5)) f
 ORDER BY f.id, f.destination LIMIT $5)
