-- The messages of some rows, in their order: all fields of a Message but the payload as JSON, and the payload, whose length stands in
-- its place. The last field tells whether it has to wait; if nothing holds back at all, that is not asked for each row. Times may be
-- bytes that look like one, which JSON does not take.
SELECT json_array(
         m.id, 0, m.event_id, m.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.key,
         length(CAST(m.payload AS BLOB)), m.content_type, m.headers, m.schema_version, m.correlation_id, m.causation_id,
         m.trace_id, CAST(m.occurred_at AS TEXT), CAST(m.recorded_at AS TEXT), CAST(m.available_at AS TEXT), m.held,
         m.attempts, m.tries, CASE WHEN :judge AND ({holds_back}) THEN {behind} ELSE 0 END) AS facts,
       CAST(m.payload AS BLOB) AS payload
  FROM {rows} AS r
 CROSS JOIN {message} AS m
 WHERE m.row_id = r.row_id;
