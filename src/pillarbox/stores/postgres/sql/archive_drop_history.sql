-- Drop exactly these rows of the history.
WITH gone AS (
  DELETE FROM {history} h
  USING unnest($1::text[], $2::bigint[], $3::text[], $4::timestamptz[]) AS k(event_id, id, destination, published_at)
  WHERE h.event_id = k.event_id AND h.id = k.id AND h.destination = k.destination AND h.published_at = k.published_at
  RETURNING 1
) SELECT count(*) FROM gone
