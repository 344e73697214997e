-- Every consumer that has receipts or tallies, by name: its receipts, counted up to a bound, and what it tallied lately. One
-- step along the indexes per name. The last error is that of the row with the latest failure: so SQLite does beside a max().
WITH RECURSIVE named AS (
  SELECT min(consumer) AS consumer
    FROM (SELECT min(consumer) AS consumer FROM {inbox_receipt} UNION ALL SELECT min(consumer) FROM {inbox_tally})
  UNION ALL
  SELECT (SELECT min(consumer)
            FROM (SELECT min(r.consumer) AS consumer FROM {inbox_receipt} r WHERE r.consumer > n.consumer
                  UNION ALL
                  SELECT min(t.consumer) FROM {inbox_tally} t WHERE t.consumer > n.consumer))
  FROM named n WHERE n.consumer IS NOT NULL
), known AS (
  SELECT consumer FROM named WHERE consumer IS NOT NULL LIMIT :limit
)
SELECT k.consumer, (SELECT count(*) FROM (SELECT 1 FROM {inbox_receipt} r WHERE r.consumer = k.consumer LIMIT :most)),
       sum(t.handled), sum(t.repeated), sum(t.failed), sum(t.given_up), t.last_error, max(t.last_failed_at)
FROM known k
LEFT JOIN {inbox_tally} t ON t.consumer = k.consumer
      AND t.hour > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:lately))
GROUP BY k.consumer ORDER BY k.consumer;
