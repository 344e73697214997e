-- A relay begins to live by its lease.
INSERT INTO {relay} (id, name, host, version, lease_until, lease_length, lease_end)
VALUES (:id, :name, :host, :version,
        coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', :lease)), '9999-12-31T23:59:59.999Z'),
        :lease, elapsed() + :lease)
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, lease_length = excluded.lease_length,
                               lease_end = excluded.lease_end;
