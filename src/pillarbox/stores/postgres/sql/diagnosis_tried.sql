-- Of the first $1 messages that wait, those that were tried more than $2 times.
SELECT left(coalesce(m.last_error, ''), 500), m.event_id
FROM (SELECT event_id, last_error, attempts + tries AS tries FROM {message} ORDER BY recorded_at, id LIMIT $1) m
WHERE m.tries > $2
