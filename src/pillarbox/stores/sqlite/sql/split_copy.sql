-- One copy per destination, each in the place of its original; one that already waits is left alone.
INSERT OR IGNORE INTO {message} (
  place, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
  schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, available_at, held,
  attempts, tries, last_error, first_failed_at, last_attempt_at)
SELECT m.id, m.event_id, d.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.ordering_key, m.payload,
       m.content_type, m.headers, m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at,
       m.recorded_at, m.available_at, m.held, m.attempts, m.tries, m.last_error, m.first_failed_at, m.last_attempt_at
  FROM temp.desk AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND m.destination <> d.destination;
