-- Every consumer that has receipts or tallies, by name: its receipts, counted up to a bound, and what it tallied lately. One
-- step along the indexes per name; receipts are counted in the order of their index, or a rare one would be searched for.
WITH RECURSIVE named AS (
  SELECT least((SELECT min(consumer) FROM {inbox_receipt}), (SELECT min(consumer) FROM {inbox_tally})) AS consumer
  UNION ALL
  SELECT least((SELECT min(r.consumer) FROM {inbox_receipt} r WHERE r.consumer > n.consumer),
               (SELECT min(t.consumer) FROM {inbox_tally} t WHERE t.consumer > n.consumer))
  FROM named n WHERE n.consumer IS NOT NULL
)
SELECT n.consumer, (SELECT count(*) FROM (SELECT FROM {inbox_receipt} r WHERE r.consumer = n.consumer
                                          ORDER BY r.event_id LIMIT $2) AS r),
       t.handled, t.repeated, t.failed, t.given_up, t.last_error, t.last_failed_at
FROM named n CROSS JOIN LATERAL (
  SELECT sum(handled)::bigint AS handled, sum(repeated)::bigint AS repeated, sum(failed)::bigint AS failed,
         sum(given_up)::bigint AS given_up, max(last_failed_at) AS last_failed_at,
         (array_agg(last_error ORDER BY last_failed_at DESC NULLS LAST))[1] AS last_error
  FROM {inbox_tally} WHERE consumer = n.consumer AND hour > now() - $3::double precision * interval '1 second'
) AS t
WHERE n.consumer IS NOT NULL LIMIT $1
