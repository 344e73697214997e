-- Drop, in one bite, samples that no chart shows any more.
WITH gone AS (
  DELETE FROM {stat} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {stat} WHERE at < now() - $1 * interval '1 second' ORDER BY at LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
