-- Drop, in one bite, what people did and asked for long ago; what is still to be done stays. Ids go with time, so the first
-- young one tells where to stop.
WITH gone AS (
  DELETE FROM {audit} WHERE audit_id = ANY (ARRAY(
    SELECT audit_id FROM {audit}
    WHERE audit_id < coalesce((
      SELECT audit_id FROM {audit} WHERE at >= now() - $1 * interval '1 second' ORDER BY audit_id LIMIT 1), 9223372036854775807)
    ORDER BY audit_id LIMIT $2)) RETURNING 1
), done AS (
  DELETE FROM {request} WHERE request_id = ANY (ARRAY(
    SELECT request_id FROM {request}
    WHERE done_at IS NOT NULL AND request_id < coalesce((
      SELECT request_id FROM {request} WHERE asked_at >= now() - $1 * interval '1 second' ORDER BY request_id LIMIT 1),
      9223372036854775807)
    ORDER BY request_id LIMIT $2))
) SELECT count(*) FROM gone
