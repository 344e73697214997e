-- What people asked for of one event and no relay did yet, in the order of asking.
SELECT action, destination, delay, asked_by, asked_at
FROM {request} WHERE event_id = $1 AND done_at IS NULL ORDER BY request_id LIMIT 100
