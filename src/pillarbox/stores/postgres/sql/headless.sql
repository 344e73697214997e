-- Look at lines, one after another, for those that wait although nothing holds them: hops over the index, never walks a line.
WITH RECURSIVE line AS (
  SELECT $2::smallint AS lane, $3::text COLLATE "C" AS key, $4::text COLLATE "C" AS destination, NULL::bigint AS id
  UNION ALL
  SELECT f.lane, f.key, f.destination, f.id
  FROM line CROSS JOIN LATERAL (
    (SELECT h.lane, h.key, h.destination, h.id FROM {message} h
     WHERE h.held = 'behind' AND h.lane = line.lane AND (h.key, h.destination) > (line.key, line.destination)
     ORDER BY h.key, h.destination, h.id LIMIT 1)
    UNION ALL
    -- Nothing more in this lane: the first line of the next lane that has one.
    (SELECT n.lane, g.key, g.destination, g.id FROM unnest($1::text::smallint[]) AS n(lane) CROSS JOIN LATERAL (
       SELECT h.key, h.destination, h.id FROM {message} h
       WHERE h.held = 'behind' AND h.lane = n.lane AND h.key IS NOT NULL
       ORDER BY h.key, h.destination, h.id LIMIT 1) g
     WHERE n.lane > line.lane ORDER BY n.lane LIMIT 1)
    LIMIT 1) f
), s AS MATERIALIZED (SELECT * FROM line LIMIT $5 + 1)
SELECT s.lane, s.key, s.destination, s.id < (SELECT b.id FROM ({blocker}) AS b(id)) AS headless
FROM s WHERE s.id IS NOT NULL
