-- What a dead letter carries; it never changes as long as it is there.
SELECT destination, payload, headers::text FROM {dead} WHERE dead_id = $1
