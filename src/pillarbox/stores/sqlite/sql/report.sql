-- Note how a destination fares; what people set there stays, and a report that says nothing new writes nothing.
INSERT INTO {destination} AS d (destination, last_error, next_try_at)
VALUES (:destination, :error,
        CASE WHEN :next_try IS NOT NULL
             THEN coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', :next_try)),
                           '9999-12-31T23:59:59.999Z')
        END)
ON CONFLICT (destination) DO UPDATE SET last_error = excluded.last_error, next_try_at = excluded.next_try_at
 WHERE (d.last_error, d.next_try_at) IS NOT (excluded.last_error, excluded.next_try_at);
