-- Old history, whole, by the time it was recorded.
SELECT id, event_id, destination, 'PUBLISHED', event_type, aggregate_type, aggregate_id, key, payload, content_type,
       headers::text, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, published_at, seconds,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       last_error, last_attempt_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM {history}
WHERE published_at < now() - $1::double precision * interval '1 second'
  -- Where to go on: see browse_from_position.
  AND (recorded_at, id) >= ($3, $4) AND ((recorded_at, id) <> ($3, $4) OR destination > $5)
ORDER BY recorded_at, id, destination LIMIT $2
