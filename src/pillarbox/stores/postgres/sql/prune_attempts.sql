-- Drop, in one bite, old failed attempts.
WITH gone AS (
  DELETE FROM {attempt} WHERE attempt_id = ANY (ARRAY(
    SELECT attempt_id FROM {attempt} WHERE attempted_at < now() - $1 * interval '1 second' ORDER BY attempt_id LIMIT $2))
  RETURNING 1
) SELECT count(*) FROM gone
