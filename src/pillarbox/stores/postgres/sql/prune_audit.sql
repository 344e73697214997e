-- Drop, in one bite, what people did and asked for long ago; what is still to be done stays. Ids go with time: the first are
-- the oldest.
WITH gone AS (
  DELETE FROM {audit} WHERE audit_id = ANY (ARRAY(
    SELECT audit_id FROM (SELECT audit_id, at FROM {audit} ORDER BY audit_id LIMIT $2) AS first
    WHERE at < now() - $1 * interval '1 second')) RETURNING 1
), done AS (
  DELETE FROM {request} WHERE request_id = ANY (ARRAY(
    SELECT request_id FROM (SELECT request_id, done_at FROM {request} ORDER BY request_id LIMIT $2) AS first
    WHERE done_at < now() - $1 * interval '1 second')) RETURNING 1
) SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM done)
