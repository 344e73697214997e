-- A page of dead letters, the newest first.
SELECT dead_id, event_id, destination, event_type, key, payload, error, attempts, first_failed_at, died_at
FROM {dead} WHERE $2::bigint IS NULL OR dead_id < $2 ORDER BY dead_id DESC LIMIT $1
