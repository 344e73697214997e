-- Note what is about to be sent, and tell what was sent before, and of which this very send was begun and never settled.
WITH asked AS MATERIALIZED (
  SELECT DISTINCT ON (event_id, destination) event_id, destination, begun
  FROM unnest($1::text::text[], $2::text::text[], $3::text::bigint[]) AS a(event_id, destination, begun)
  ORDER BY event_id, destination
), noted AS (
  INSERT INTO {processed_event} AS p (event_id, destination, status, begun)
  SELECT event_id, destination, 'PROCESSING', begun FROM asked ORDER BY event_id, destination
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', begun = excluded.begun, updated_at = now()
    WHERE p.status = 'FAILED' OR (p.status = 'PROCESSING' AND p.begun IS DISTINCT FROM excluded.begun)
)
-- As it was before this statement.
SELECT p.event_id, p.destination, CASE p.status WHEN 'SUCCESS' THEN 'sent' ELSE 'unknown' END AS before
  FROM asked a JOIN {processed_event} p ON p.event_id = ANY (ARRAY[a.event_id]) AND p.destination = a.destination
 WHERE p.status = 'SUCCESS' OR (p.status = 'PROCESSING' AND p.begun = a.begun)
