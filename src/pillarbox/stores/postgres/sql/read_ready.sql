-- Fetch what waits for nothing: per lane, in order, without what is in flight, within a number and a sum of bytes.
WITH lanes AS MATERIALIZED (
  -- Most lanes have nothing waiting: ask once per lane instead of once per message.
  SELECT l.lane,
         EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND ({is_head}) OFFSET 0)
         OR EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND h.held = 'behind' OFFSET 0)
         OR EXISTS (SELECT FROM {message} h WHERE h.lane = l.lane AND h.held IS NULL AND h.available_at <= now() OFFSET 0) AS waiting
  FROM unnest($1::text::smallint[]) AS l(lane)
)
SELECT {columns}, CASE WHEN m.waiting THEN {behind} ELSE false END AS behind
FROM ({outside}
  SELECT l.waiting, x.*, {bytes_so_far}
  FROM lanes l CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at IS NULL AND {not_in_hand} {in_range}
    ORDER BY y.id LIMIT $2) x
  LIMIT $3
) m
WHERE {told_of}
