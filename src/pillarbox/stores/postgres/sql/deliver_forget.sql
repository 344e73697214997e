-- Settle delivered messages where no history is kept: they are gone.
WITH {fence}, gone AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[]) AS a(event_id, destination, id, resolved)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.event_id, a.resolved
){ledger}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM gone) AS count, 0 AS duplicates
