-- A page of dead letters, the newest first.
SELECT dead_id, event_id, destination, event_type, key, CAST(payload AS BLOB), error, attempts, first_failed_at, died_at
  FROM {dead}
 WHERE dead_id < coalesce(:before, 9223372036854775807)
 ORDER BY dead_id DESC
 LIMIT :limit;
