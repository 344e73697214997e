-- name: recorded
-- Return a row if the connection sees an event: pending, delivered or dead-lettered.
SELECT 1 FROM {event} WHERE event_id = $1 LIMIT 1;
