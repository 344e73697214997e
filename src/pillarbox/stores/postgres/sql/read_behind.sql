-- Read on in lines whose head is gone: what waits behind, in order, up to the first message that still holds the line.
SELECT {columns}, false AS behind
FROM ({outside}
  SELECT x.*, {bytes_so_far}
  FROM unnest($1::text::smallint[], $8::text::text[], $9::text::text[]) AS s(lane, key, destination)
  CROSS JOIN LATERAL ({blocker}) AS b(id)
  CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = s.lane AND y.key = s.key AND y.destination = s.destination AND y.held = 'behind'
      AND y.id < b.id AND {not_in_hand} {in_range}
    ORDER BY y.id LIMIT $2) x
  LIMIT $3
) m
WHERE {told_of}
