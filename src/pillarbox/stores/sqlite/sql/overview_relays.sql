-- Every relay, the time left of its lease, and how its breakers stand.
SELECT id, name, host, round((julianday(lease_until) - julianday({now})) * 86400.0, 3), breakers FROM {relay} ORDER BY id;
