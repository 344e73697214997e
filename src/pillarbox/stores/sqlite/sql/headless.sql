-- Look at lines, one after another, for those that wait although nothing holds them: hops over the index, never walks a line.
-- Each hop seeks the next destination of the same key, else the next key; comparing both at once would walk the key.
WITH RECURSIVE line (key, destination, id) AS (
  SELECT b.key, b.destination, b.id
    FROM {message} AS b
   WHERE b.row_id = coalesce(
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key = :key AND x.destination > :destination
             ORDER BY x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key > :key
             ORDER BY x.key, x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key IS NOT NULL AND :key IS NULL
             ORDER BY x.key, x.destination, x.id LIMIT 1))
  UNION ALL
  SELECT b.key, b.destination, b.id
    FROM line AS l
   CROSS JOIN {message} AS b
   WHERE b.row_id = coalesce(
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key = l.key AND x.destination > l.destination
             ORDER BY x.destination, x.id LIMIT 1),
           (SELECT x.row_id FROM {message} AS x
             WHERE x.held = 'behind' AND x.key > l.key
             ORDER BY x.key, x.destination, x.id LIMIT 1))
   LIMIT :limit
)
SELECT s.key, s.destination, s.id < {blocker} FROM line AS s ORDER BY s.key, s.destination;
