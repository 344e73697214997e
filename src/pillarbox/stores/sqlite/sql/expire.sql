-- Relays whose lease ended are gone for good: their next heartbeat finds nothing.
DELETE FROM {relay} WHERE lease_until <= {now} AND id <> :relay;
