-- Dead letters by their numbers, whole, the newest first.
SELECT id, event_id, destination, 'FAILED', event_type, aggregate_type, aggregate_id, key, CAST(payload AS BLOB),
       content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, NULL, NULL,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       error, last_attempt_at, NULL, NULL, NULL, dead_id, first_failed_at, died_at
  FROM {dead}
 WHERE dead_id IN (SELECT value FROM json_each(:letters))
 ORDER BY dead_id DESC;
