-- Send a dead letter again with another content: to the end of its key, attempts at zero. If its identity waits already it
-- stays dead as it is.
WITH chosen AS MATERIALIZED (
  SELECT * FROM {dead} WHERE dead_id = $1 FOR UPDATE
), back AS (
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
    headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, tries)
  SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, $2, content_type, $3::jsonb,
    schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, 1 FROM chosen
  ON CONFLICT DO NOTHING RETURNING event_id, destination
), gone AS (
  DELETE FROM {dead} d USING back b WHERE d.dead_id = $1 RETURNING d.event_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif($4, ''), current_user), 'edit', event_id, $5::jsonb FROM gone
), again AS (
  -- An operator wants it sent, whatever the ledger says; the one try does the same for the history.
  UPDATE {processed_event} p SET status = 'PROCESSING', begun = NULL, updated_at = now() FROM back b
  WHERE p.event_id = b.event_id AND p.destination = b.destination
)
SELECT count(*) FROM gone
