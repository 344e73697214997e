-- Drop, in one bite, tallies of consumers as old as receipts that go: one step along the index per name.
WITH RECURSIVE named AS (
  SELECT min(consumer) AS consumer FROM {inbox_tally}
  UNION ALL
  SELECT (SELECT min(t.consumer) FROM {inbox_tally} t WHERE t.consumer > n.consumer)
  FROM named n WHERE n.consumer IS NOT NULL
), gone AS (
  DELETE FROM {inbox_tally} WHERE ctid = ANY (ARRAY(
    SELECT old.ctid FROM named n CROSS JOIN LATERAL (
      SELECT t.ctid FROM {inbox_tally} t
      WHERE t.consumer = n.consumer AND t.hour < now() - $1 * interval '1 second'
      ORDER BY t.hour LIMIT $2) AS old
    LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
