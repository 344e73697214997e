-- Everything known of one event.
SELECT event_id, destination, status, event_type, key, attempts, retry_count, last_error, next_retry_at, published_at, locked_by
FROM {event} WHERE event_id = $1 ORDER BY destination, created_at
