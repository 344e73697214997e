-- Drop exactly these dead letters.
WITH gone AS (
  DELETE FROM {dead} WHERE dead_id = ANY ($1::bigint[]) RETURNING 1
) SELECT count(*) FROM gone
