-- Drop, in one bite, what the ledger noted long ago; what may be under way stays. Ids go with time: the first are the oldest.
WITH gone AS (
  DELETE FROM {processed_event} WHERE id = ANY (ARRAY(
    SELECT id FROM (SELECT id, event_id, status, created_at FROM {processed_event} ORDER BY id LIMIT $2) AS first
    WHERE created_at < now() - $1 * interval '1 second'
      AND (status <> 'PROCESSING' OR NOT EXISTS (SELECT FROM {message} m WHERE m.event_id = first.event_id)))) RETURNING 1
) SELECT count(*) FROM gone
