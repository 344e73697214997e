-- Keys that stand still: first those whose head waits for a person, then, of so many lines, those whose head waits for its retry
-- with others behind it, the longest first. Hops over the index from line to line; 100,000 heads with nobody behind cost nothing.
WITH RECURSIVE line AS (
  (SELECT h.lane, h.key, h.destination FROM {message} h
   WHERE h.held = 'behind' ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1)
  UNION ALL
  SELECT f.lane, f.key, f.destination FROM line CROSS JOIN LATERAL (
    SELECT h.lane, h.key, h.destination FROM {message} h
    WHERE h.held = 'behind' AND (h.lane, h.key, h.destination) > (line.lane, line.key, line.destination)
    ORDER BY h.lane, h.key, h.destination, h.id LIMIT 1) f
), looked_at AS MATERIALIZED (SELECT * FROM line LIMIT $3
), retrying AS MATERIALIZED (
  SELECT h.* FROM looked_at l CROSS JOIN LATERAL (
    SELECT h.lane, h.key, h.destination, h.event_id, h.event_type, h.last_error, h.held, h.available_at,
           coalesce(h.first_failed_at, h.recorded_at) AS since
    FROM {message} h WHERE h.lane = l.lane AND h.key = l.key AND h.destination = l.destination AND ({is_head})
    ORDER BY h.id LIMIT 1) h
  WHERE h.held IS NULL AND h.available_at > now() ORDER BY h.since LIMIT $1
)
(SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at) AS since,
        (SELECT count(*) FROM (SELECT FROM {message} b WHERE b.lane = m.lane AND b.key = m.key
                               AND b.destination IN (m.destination, '') AND b.held = 'behind' LIMIT $2::int + 1) AS w) AS behind,
        NULL::timestamptz AS next_try
 FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT $1)
UNION ALL
(SELECT r.key, r.destination, r.event_id, r.event_type, r.last_error, r.since,
        (SELECT count(*) FROM (SELECT FROM {message} b WHERE b.lane = r.lane AND b.key = r.key
                               AND b.destination IN (r.destination, '') AND b.held = 'behind' LIMIT $2::int + 1) AS w),
        r.available_at
 FROM retrying r ORDER BY r.since)
LIMIT $1
