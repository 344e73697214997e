-- Read retries and delayed events whose time has come: per lane, the longest due first.
SELECT {columns}, {behind} AS behind
FROM ({outside}
  SELECT x.*, {bytes_so_far}
  FROM unnest($1::text::smallint[]) AS l(lane) CROSS JOIN LATERAL (
    SELECT {fetched} FROM {message} y
    WHERE y.lane = l.lane AND y.held IS NULL AND y.available_at <= now() AND {not_in_hand} {in_range}
    ORDER BY y.available_at LIMIT $2) x
  LIMIT $3
) m
WHERE {told_of}
