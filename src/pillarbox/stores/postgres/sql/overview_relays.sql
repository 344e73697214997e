-- Every relay, the time left of its lease, and how its breakers stand.
SELECT id, name, host, extract(epoch FROM lease_until - now())::float8, breakers::text FROM {relay} ORDER BY id
