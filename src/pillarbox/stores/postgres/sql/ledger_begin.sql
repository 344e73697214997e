-- Note what is about to be sent, and tell what was sent before.
WITH asked AS MATERIALIZED (
  SELECT DISTINCT event_id, destination FROM unnest($1::text[], $2::text[]) AS a(event_id, destination)
), begun AS (
  INSERT INTO {processed_event} AS p (event_id, destination, status)
  SELECT event_id, destination, 'PROCESSING' FROM asked ORDER BY event_id, destination
  ON CONFLICT (event_id, destination) DO UPDATE SET status = 'PROCESSING', updated_at = now() WHERE p.status = 'FAILED'
)
SELECT p.event_id, p.destination FROM {processed_event} p JOIN asked USING (event_id, destination)
 WHERE p.status = 'SUCCESS'
