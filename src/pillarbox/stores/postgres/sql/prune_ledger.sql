-- Drop, in one bite, what the ledger noted long ago; what may be under way stays. Ids go with time, so the first young one
-- tells where to stop.
WITH gone AS (
  DELETE FROM {processed_event} WHERE id = ANY (ARRAY(
    SELECT id FROM {processed_event}
    WHERE status <> 'PROCESSING' AND id < coalesce((
      SELECT id FROM {processed_event} WHERE created_at >= now() - $1 * interval '1 second' ORDER BY id LIMIT 1),
      9223372036854775807)
    ORDER BY id LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
