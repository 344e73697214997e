-- Append events and, in the same round trip, ring the doorbell if a relay sleeps; the bell sounds at commit.
WITH added AS (
{append}
)
SELECT pg_notify('{channel}', '')
FROM (SELECT FROM {relay} WHERE asleep_until > now() LIMIT 1) AS sleeper;
