-- Relays whose lease ended are gone for good: their next heartbeat finds nothing.
DELETE FROM {relay} WHERE NOT {lease_runs} AND id <> :relay
RETURNING id;
