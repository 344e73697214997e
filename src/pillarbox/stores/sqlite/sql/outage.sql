-- What events wait for in an outage: the error and the next attempt of each destination that fails, and under '' of the
-- first of them while no relay can send anywhere, for events that are not routed yet.
(
  SELECT d.destination, d.last_error, d.next_try_at FROM {destination} AS d
  UNION ALL
  SELECT * FROM (SELECT '', d.last_error, d.next_try_at FROM {destination} AS d
                  WHERE d.last_error IS NOT NULL
                    AND EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                 WHERE r.lease_until > {now} AND b.key = d.destination AND b.value <> 'closed')
                    AND NOT EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                     WHERE r.lease_until > {now} AND b.value = 'closed')
                  ORDER BY d.next_try_at LIMIT 1));
