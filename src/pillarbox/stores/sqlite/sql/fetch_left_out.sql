-- A message that is too large for its look, in the order of fields of a Message, without what makes it large.
SELECT m.row_id, m.id, 0, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key,
       x'', m.content_type, '{}', m.schema_version, NULL, NULL, NULL,
       m.occurred_at, m.recorded_at, m.available_at, m.held, m.attempts, m.tries, 0
  FROM {message} AS m
 WHERE m.row_id = :row;
