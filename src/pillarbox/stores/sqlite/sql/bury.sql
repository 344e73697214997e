-- What was given up leaves for the dead letters.
INSERT INTO {dead} (id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload,
                    content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at,
                    recorded_at, attempts, tries, error, first_failed_at, last_attempt_at)
SELECT m.id, m.event_id, d.destination, m.event_type, m.aggregate_type, m.aggregate_id, m.ordering_key, m.key, m.payload,
       m.content_type, m.headers, m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at,
       m.recorded_at, m.attempts + d.charge - d.noted, m.tries, d.error, coalesce(m.first_failed_at, {now}),
       CASE WHEN d.charge THEN {now} ELSE m.last_attempt_at END
  FROM temp.desk AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id = d.row_id AND d.outcome = 'dead'
 ORDER BY m.id;
