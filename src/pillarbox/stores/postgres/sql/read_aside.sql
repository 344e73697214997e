-- Read what was put aside for these destinations: per lane, in order.
SELECT {columns}, {behind} AS behind
FROM ({outside}
  SELECT x.*, {bytes_so_far}
  FROM unnest($1::text::smallint[]) AS l(lane) CROSS JOIN LATERAL (
    SELECT z.* FROM unnest($8::text::text[]) AS d(destination) CROSS JOIN LATERAL (
      SELECT {fetched} FROM {message} y
      WHERE y.lane = l.lane AND y.destination = d.destination AND y.held = 'aside' AND {not_in_hand} {in_range}
      ORDER BY y.id LIMIT $2) z
    ORDER BY z.id LIMIT $2) x
  LIMIT $3
) m
WHERE {told_of}
