-- Every relay: the time left of its lease, how its breakers stand, how long it lives, what it has had in hand for long.
SELECT id, name, host, extract(epoch FROM lease_until - now())::float8, breakers::text, version,
       extract(epoch FROM now() - started_at)::float8, jsonb_array_length(in_hand), drain_asked_by IS NOT NULL, stalled
FROM {relay} ORDER BY id
