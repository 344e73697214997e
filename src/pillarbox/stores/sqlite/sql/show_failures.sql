-- The latest failed sends of one event.
SELECT destination, attempt, charged, error, attempted_at, seconds
  FROM {attempt}
 WHERE event_id = :event_id
 ORDER BY attempt_id DESC
 LIMIT 100;
