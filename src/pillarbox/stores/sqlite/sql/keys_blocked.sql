-- Keys that stand still: first those whose head waits for a person, then, of so many lines, those whose head waits for its retry
-- with others behind it, the longest first. Hops over the index from line to line; 100,000 heads with nobody behind cost nothing.
WITH RECURSIVE line (key, destination) AS (
  SELECT * FROM (SELECT key, destination FROM {message}
                  WHERE held = 'behind' AND key IS NOT NULL ORDER BY key, destination, id LIMIT 1)
  UNION ALL
  SELECT b.key, b.destination
    FROM line AS l
   CROSS JOIN {message} AS b
   WHERE b.row_id = coalesce(
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key = l.key AND x.destination > l.destination
             ORDER BY x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key > l.key
             ORDER BY x.key, x.destination, x.id LIMIT 1))
   LIMIT :lines
), retrying AS (
  SELECT m.*, coalesce(m.first_failed_at, m.recorded_at) AS since
    FROM line AS l
   CROSS JOIN {message} AS m
   WHERE m.row_id = (SELECT h.row_id FROM {message} AS h
                      WHERE h.key = l.key AND h.destination = l.destination
                        AND (h.held IN ('aside', 'blocked')
                             OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
                      ORDER BY h.id LIMIT 1)
     AND m.held IS NULL AND m.available_at > {now}
   ORDER BY since LIMIT :limit
)
SELECT * FROM (
  SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at) AS since,
         (SELECT count(*) FROM (SELECT 1 FROM {message} b WHERE b.key = m.key AND b.destination IN (m.destination, '')
                                 AND b.held = 'behind' LIMIT :most + 1)) AS behind,
         NULL AS next_try
    FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT :limit)
UNION ALL
SELECT * FROM (
  SELECT r.key, r.destination, r.event_id, r.event_type, r.last_error, r.since,
         (SELECT count(*) FROM (SELECT 1 FROM {message} b WHERE b.key = r.key AND b.destination IN (r.destination, '')
                                 AND b.held = 'behind' LIMIT :most + 1)),
         r.available_at
    FROM retrying AS r ORDER BY r.since)
LIMIT :limit;
