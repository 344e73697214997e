-- The session of each relay's heartbeat: when it is gone, the relay is dead or cut off, and others need not wait for its lease.

ALTER TABLE {relay} ADD COLUMN session text;
