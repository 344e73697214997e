-- Every consumer that has receipts, by name, with how many, counted up to a bound: one step along the index per name.
WITH RECURSIVE named AS (
  SELECT min(consumer) AS consumer FROM {inbox_receipt}
  UNION ALL
  SELECT (SELECT min(r.consumer) FROM {inbox_receipt} r WHERE r.consumer > n.consumer)
  FROM named n WHERE n.consumer IS NOT NULL
)
SELECT consumer, (SELECT count(*) FROM (SELECT 1 FROM {inbox_receipt} r WHERE r.consumer = named.consumer LIMIT :most) AS r)
FROM named WHERE consumer IS NOT NULL LIMIT :limit;
