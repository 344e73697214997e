-- End the leases of relays whose session is still gone: others need not wait for the lease. Nothing is taken here.
UPDATE {relay} r SET lease_until = now() - interval '1 millisecond'
FROM unnest($1::text[], $2::text[]) AS gone(id, session)
WHERE r.id = gone.id AND r.session = gone.session AND {session_ended}
RETURNING r.id
