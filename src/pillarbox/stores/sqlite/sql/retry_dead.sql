-- Dead letters become waiting messages again, unless their event already waits; a place below zero says which letter.
INSERT OR IGNORE INTO {message} (
  place, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
  schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, tries)
SELECT -dead_id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
       headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, 1
  FROM {dead}
 WHERE dead_id IN (SELECT value FROM json_each(:ids))
 ORDER BY id, dead_id;
