-- Everything known of an event.
SELECT event_id, destination, status, event_type, key, attempts, retry_count, last_error, next_retry_at, published_at,
       locked_by
  FROM {event}
 WHERE event_id = :event_id
 ORDER BY id, destination;
