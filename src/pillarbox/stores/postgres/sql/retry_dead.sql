-- Send dead letters again: to the end of their key, attempts at zero. Those whose identity waits already stay dead.
WITH mine AS MATERIALIZED (
  -- Locked: whom somebody else sends again at this moment is gone once they are done, and is not sent twice.
  SELECT * FROM {dead} WHERE dead_id = ANY ($1::bigint[]) ORDER BY dead_id FOR UPDATE
), chosen AS MATERIALIZED (
  SELECT DISTINCT ON (event_id, destination) * FROM mine ORDER BY event_id, destination, dead_id
), back AS (
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
    headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, tries)
  SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, 1 FROM chosen ORDER BY dead_id
  ON CONFLICT DO NOTHING RETURNING event_id, destination
), gone AS (
  DELETE FROM {dead} d USING chosen c JOIN back b USING (event_id, destination) WHERE d.dead_id = c.dead_id
  RETURNING d.event_id, d.destination, d.dead_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif($2, ''), current_user), 'retry', event_id,
    jsonb_build_object('destination', destination, 'dead_id', dead_id) FROM gone WHERE $3::bigint IS NULL
), act AS (
  UPDATE {audit} a SET {grows} FROM (SELECT count(*) AS done FROM gone) g WHERE a.audit_id = $3
), again AS (
  -- An operator wants it sent, whatever the ledger says; the one try does the same for the history.
  UPDATE {processed_event} p SET status = 'PROCESSING', begun = NULL, updated_at = now() FROM back b
  WHERE p.event_id = b.event_id AND p.destination = b.destination
)
SELECT count(*) FROM gone
