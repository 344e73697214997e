-- Drop tallies of consumers as old as receipts that go: one step along the index per name.
DELETE FROM {inbox_tally}
 WHERE rowid IN (WITH RECURSIVE named AS (
                   SELECT min(consumer) AS consumer FROM {inbox_tally}
                   UNION ALL
                   SELECT (SELECT min(t.consumer) FROM {inbox_tally} t WHERE t.consumer > n.consumer)
                   FROM named n WHERE n.consumer IS NOT NULL
                 )
                 SELECT t.rowid FROM named n CROSS JOIN {inbox_tally} t
                  WHERE t.consumer = n.consumer
                    AND t.hour <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  LIMIT :most);
