-- Drop old dead letters in one bite.
WITH gone AS (
  DELETE FROM {dead} WHERE dead_id = ANY (ARRAY(
    SELECT dead_id FROM {dead} WHERE died_at < now() - $1 * interval '1 second' ORDER BY died_at LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
