-- A message that is too large for its look, as in fetch.sql, without what makes it large.
SELECT json_array(
         m.id, 0, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key,
         0, m.content_type, '{}', m.schema_version, NULL, NULL, NULL,
         CAST(m.occurred_at AS TEXT), CAST(m.recorded_at AS TEXT), CAST(m.available_at AS TEXT), m.held,
         m.attempts, m.tries, 0),
       x''
  FROM {message} AS m
 WHERE m.row_id = :row;
