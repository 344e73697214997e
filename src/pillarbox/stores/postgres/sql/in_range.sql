-- Fragment: y lies in the range of times, and nothing before it in its key lies outside.
AND y.recorded_at >= coalesce({after}, '-infinity') AND y.recorded_at < coalesce({before}, 'infinity')
AND coalesce(y.id < CASE y.destination
  WHEN '' THEN ((SELECT first FROM outside) ->> y.key)::bigint
  ELSE least(((SELECT first FROM outside) ->> (y.key || E'\n' || y.destination))::bigint,
             ((SELECT first FROM outside) ->> (y.key || E'\n'))::bigint) END, true)
