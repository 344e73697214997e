-- Old dead letters, whole, by their number.
SELECT id, event_id, destination, 'FAILED', event_type, aggregate_type, aggregate_id, key, payload, content_type,
       headers::text, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, NULL, NULL,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       error, last_attempt_at, NULL, NULL, NULL, dead_id, first_failed_at, died_at
FROM {dead}
WHERE died_at < now() - $1::double precision * interval '1 second' AND dead_id > $3 ORDER BY dead_id LIMIT $2
