-- Fragment: a relay's lease runs, by the host's elapsed time. One that ends later than its length from now is from before
-- a restart of the host. Relays of versions that only wrote a wall-clock time are judged by that.
coalesce(lease_end > elapsed() AND lease_end <= elapsed() + lease_length, lease_until > {now})
