-- What was delivered leaves for the history.
INSERT INTO {history} (id, event_id, destination, event_type, aggregate_type, aggregate_id, key, payload, content_type,
                       headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at,
                       attempts, tries, last_error, last_attempt_at, published_at, seconds)
SELECT m.id, m.event_id, d.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key, m.payload, m.content_type,
       m.headers, m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at,
       m.attempts, m.tries, m.last_error, m.last_attempt_at, {now}, d.seconds
  FROM {settled} AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome = 'delivered';
