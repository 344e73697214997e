-- Drop dead letters for good, and remember who did.
WITH gone AS (
  DELETE FROM {dead} WHERE dead_id = ANY ($1::bigint[]) RETURNING event_id, destination, dead_id
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail)
  SELECT coalesce(nullif($2, ''), current_user), 'discard', event_id,
    jsonb_build_object('destination', destination, 'dead_id', dead_id) FROM gone WHERE $3::bigint IS NULL
), act AS (
  UPDATE {audit} a SET {grows} FROM (SELECT count(*) AS done FROM gone) g WHERE a.audit_id = $3
)
SELECT count(*) FROM gone
