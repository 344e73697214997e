-- Begin to live: one row and one lease per relay.
INSERT INTO {relay} (id, name, host, version, lease_until)
VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second')
