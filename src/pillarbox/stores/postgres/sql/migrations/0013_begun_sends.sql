-- The ledger tells a send that was started and never settled from an earlier one of the same event, and an event that an operator
-- sends again in SQL is sent, whatever the ledger, the history or a lowered max_payload says.

ALTER TABLE {processed_event} ADD COLUMN send_number bigint;

CREATE OR REPLACE FUNCTION {retry}(wanted text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  internal CONSTANT text := coalesce(current_setting('pillarbox.internal', true), '');
  done integer;
BEGIN
  -- The table accepted these payloads before, perhaps under a higher limit.
  PERFORM set_config('pillarbox.internal', 'on', true);
  -- As retry_dead.sql does it: dead letters of this event go to the end of their key, one per destination. What waits or
  -- blocks is asked of its lane's owner.
  WITH mine AS MATERIALIZED (
    SELECT * FROM {dead_letter} WHERE event_id = wanted ORDER BY dead_letter_id FOR UPDATE
  ), chosen AS MATERIALIZED (
    SELECT DISTINCT ON (destination) * FROM mine ORDER BY destination, dead_letter_id
  ), back AS (
    INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
      content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, deferrals)
    SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
      headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, 1
    FROM chosen ORDER BY dead_letter_id
    ON CONFLICT DO NOTHING RETURNING event_id, destination
  ), gone AS (
    DELETE FROM {dead_letter} d USING chosen c JOIN back b USING (destination) WHERE d.dead_letter_id = c.dead_letter_id
    RETURNING d.destination, d.dead_letter_id
  ), noted AS (
    INSERT INTO {audit} (what, subject, detail)
    SELECT 'retry', wanted, jsonb_build_object('destination', destination, 'dead_letter_id', dead_letter_id) FROM gone
  ), again AS (
    UPDATE {processed_event} p SET status = 'PROCESSING', send_number = NULL, updated_at = now() FROM back b
    WHERE p.event_id = b.event_id AND p.destination = b.destination
  ), asked AS (
    INSERT INTO {request} (action, event_id, destination)
    SELECT 'retry', m.event_id, m.destination FROM {message} m
    WHERE m.event_id = wanted AND (m.held = 'blocked' OR m.available_at IS NOT NULL)
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM asked) INTO done;
  PERFORM set_config('pillarbox.internal', internal, true);
  RETURN done;
END $$;
