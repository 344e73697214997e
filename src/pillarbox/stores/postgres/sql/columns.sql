-- Fragment: the columns of a message, in the order of its fields.
m.id, m.lane, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key, m.payload, m.content_type,
m.headers, m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at, m.available_at,
m.held, m.attempts, m.tries
