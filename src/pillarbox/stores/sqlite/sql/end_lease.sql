-- The lock of a relay is free: end its lease, so that others need not wait for it. Nothing is taken here.
UPDATE {relay} SET lease_until = {now}, lease_length = 0, lease_end = elapsed() WHERE id = :relay AND session = :session;
