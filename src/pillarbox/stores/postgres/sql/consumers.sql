-- Every consumer that has receipts, by name, with how many, counted up to a bound: one step along the index per name.
WITH RECURSIVE named AS (
  (SELECT consumer FROM {inbox_receipt} ORDER BY consumer LIMIT 1)
  UNION ALL
  SELECT (SELECT r.consumer FROM {inbox_receipt} r WHERE r.consumer > n.consumer ORDER BY r.consumer LIMIT 1)
  FROM named n WHERE n.consumer IS NOT NULL
)
SELECT consumer, (SELECT count(*) FROM (SELECT 1 FROM {inbox_receipt} r WHERE r.consumer = named.consumer LIMIT $2) AS r)
FROM named WHERE consumer IS NOT NULL LIMIT $1
