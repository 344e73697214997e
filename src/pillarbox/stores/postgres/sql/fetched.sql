-- Fragment: what a fetch takes of a row, its headers as text: made once, for its size and for the answer.
y.id, y.lane, y.event_id, y.destination, y.event_type, y.aggregate_type, y.aggregate_id, y.key, y.payload, y.content_type,
y.headers::text AS headers, y.schema_version, y.correlation_id, y.causation_id, y.trace_id, y.occurred_at, y.recorded_at,
y.available_at, y.held, y.attempts, y.tries
