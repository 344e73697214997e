-- Close the first open request for a message of my lanes, which the database refuses to carry out, with the reason.
WITH {fence}, first AS MATERIALIZED (
  SELECT r.request_id FROM {request} r LEFT JOIN {message} m ON m.event_id = ANY (ARRAY[r.event_id]) AND m.destination = r.destination
  WHERE r.done_at IS NULL AND (m.event_id IS NULL OR m.lane = ANY (ARRAY(SELECT lane FROM fence)))
    AND (m.id IS NULL OR (m.id, m.destination) NOT IN (SELECT * FROM unnest($4::text::bigint[], $5::text::text[])))
  ORDER BY r.request_id LIMIT 1
), closed AS (
  UPDATE {request} r SET done_at = now(), result = $3 FROM first WHERE r.request_id = ANY (ARRAY[first.request_id]) RETURNING 1
)
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM closed) AS count, 0 AS duplicates
