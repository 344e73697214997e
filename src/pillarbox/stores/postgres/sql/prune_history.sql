-- Drop, in one bite, old history that no day's partition took.
WITH gone AS (
  DELETE FROM {history_default} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {history_default} WHERE published_at < now() - $1 * interval '1 second' LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
