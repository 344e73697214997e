-- Old history, whole, by the time it was recorded.
SELECT id, event_id, destination, 'PUBLISHED', event_type, aggregate_type, aggregate_id, key, CAST(payload AS BLOB),
       content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, published_at,
       seconds, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       last_error, last_attempt_at, NULL, NULL, NULL, NULL, NULL, NULL
  FROM {history} INDEXED BY {prefix}history_recorded_idx
 WHERE published_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:older))
   AND (recorded_at, id, destination) > (:recorded_at, :id, :destination)
 ORDER BY recorded_at, id, destination
 LIMIT :limit;
