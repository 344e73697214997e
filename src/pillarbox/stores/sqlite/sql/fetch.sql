-- The messages of these rows, in the order of fields of a Message; the last one tells whether they have to wait.
SELECT m.row_id, m.id, 0, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key,
       CAST(m.payload AS BLOB), m.content_type, m.headers, m.schema_version, m.correlation_id, m.causation_id,
       m.trace_id, m.occurred_at, m.recorded_at, m.available_at, m.held, m.attempts, m.tries,
       CASE WHEN :judge THEN {behind} ELSE 0 END
  FROM {message} AS m
 WHERE m.row_id IN (SELECT value FROM json_each(:rows));
