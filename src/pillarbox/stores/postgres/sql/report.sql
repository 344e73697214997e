-- Note how a destination fares; what people set there stays, and a report that says nothing new writes nothing.
INSERT INTO {destination} AS d (destination, last_error, next_try_at)
VALUES ($1, $2, now() + $3::double precision * interval '1 second')
ON CONFLICT (destination) DO UPDATE SET last_error = excluded.last_error, next_try_at = excluded.next_try_at
WHERE (d.last_error, d.next_try_at) IS DISTINCT FROM (excluded.last_error, excluded.next_try_at)
