-- The latest failed sends of one event.
SELECT destination, attempt, charged, error, attempted_at, seconds
FROM {attempt} WHERE event_id = $1 ORDER BY attempt_id DESC LIMIT 100
