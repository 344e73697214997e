-- Old history, whole, by the time it was recorded, within a number and a sum of bytes.
SELECT id, event_id, destination, 'PUBLISHED', event_type, aggregate_type, aggregate_id, key, payload, content_type,
       headers::text, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, published_at, seconds,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       last_error, last_attempt_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT x.*, sum(octet_length(x.payload) + octet_length(x.headers::text)) OVER w AS bytes, row_number() OVER w AS number
      FROM (SELECT * FROM {history}
            WHERE published_at < now() - $1::double precision * interval '1 second'
              -- Where to go on: see browse_from_position.
              AND (recorded_at, id) >= ($4, $5) AND ((recorded_at, id) <> ($4, $5) OR destination > $6)
            ORDER BY recorded_at, id, destination LIMIT $2) x
      WINDOW w AS (ORDER BY x.recorded_at, x.id, x.destination ROWS UNBOUNDED PRECEDING)) m
WHERE bytes <= $3 OR number = 1
ORDER BY recorded_at, id, destination
