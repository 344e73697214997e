-- A waiting message leaves for the dead letters, because a person wants its key to go on.
INSERT INTO {dead} (id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload,
                    content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at,
                    recorded_at, attempts, tries, error, first_failed_at, last_attempt_at)
SELECT id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload,
       content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at,
       recorded_at, attempts, tries, coalesce(last_error, 'sent to the dead letters by a person'),
       coalesce(first_failed_at, {now}), last_attempt_at
  FROM {message} WHERE row_id = :row_id;
