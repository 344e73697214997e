-- Drop dead letters for good, and remember who did.
WITH gone AS (
  DELETE FROM {dead} WHERE dead_id = ANY ($1::bigint[]) RETURNING event_id
), noted AS (
  INSERT INTO {audit} (who, what, subject) SELECT coalesce(nullif($2, ''), current_user), 'discard', event_id FROM gone
)
SELECT count(*) FROM gone
