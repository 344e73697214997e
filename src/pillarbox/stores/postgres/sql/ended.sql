-- Relays whose session ended although their lease runs: they are dead or cut off.
SELECT r.id, r.session FROM {relay} r WHERE r.lease_until > now() AND r.id <> $1 AND {session_ended} ORDER BY r.id
