-- Whether a relay holds a lock on its file: when the lock is free, the relay is dead, and others need not wait for its lease.

ALTER TABLE {relay} ADD COLUMN session TEXT;
