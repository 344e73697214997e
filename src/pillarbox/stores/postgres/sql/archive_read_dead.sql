-- Old dead letters, whole, by their number, within a number and a sum of bytes.
SELECT id, event_id, destination, 'FAILED', event_type, aggregate_type, aggregate_id, key, payload, content_type,
       headers::text, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, NULL, NULL,
       attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + tries END,
       error, last_attempt_at, NULL, NULL, NULL, dead_id, first_failed_at, died_at
FROM (SELECT x.*, sum(octet_length(x.payload) + octet_length(x.headers::text)) OVER w AS bytes, row_number() OVER w AS number
      FROM (SELECT * FROM {dead}
            WHERE died_at < now() - $1::double precision * interval '1 second' AND dead_id > $4 ORDER BY dead_id LIMIT $2) x
      WINDOW w AS (ORDER BY x.dead_id ROWS UNBOUNDED PRECEDING)) m
WHERE bytes <= $3 OR number = 1
ORDER BY dead_id
