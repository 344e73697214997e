-- Fragment: the columns of a message, in the order of its fields; one that exceeds the bytes comes without its content.
m.id, m.lane, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key,
CASE WHEN {within_bytes} THEN m.payload END AS payload, m.content_type,
CASE WHEN {within_bytes} THEN m.headers END AS headers, m.schema_version,
CASE WHEN {within_bytes} THEN m.correlation_id END AS correlation_id,
CASE WHEN {within_bytes} THEN m.causation_id END AS causation_id, CASE WHEN {within_bytes} THEN m.trace_id END AS trace_id,
m.occurred_at, m.recorded_at, m.available_at, m.held, m.attempts, m.tries
