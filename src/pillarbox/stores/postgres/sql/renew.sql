-- Heartbeat: live on, say what is in hand, what could be sent and why nothing gets on, and learn it of the others. No row back = everything lost.
UPDATE {relay} SET lease_until = now() + $2 * interval '1 second',
  in_hand = (SELECT coalesce(jsonb_agg(jsonb_build_object('event_id', h.event_id, 'destination', h.destination,
                                         'since', now() - h.seconds * interval '1 second')), '[]')
             FROM unnest($3::text::text[], $4::text::text[], $5::text::double precision[]) AS h(event_id, destination, seconds)),
  breakers = $6::jsonb,
  stalled = $7,
  -- Only a session of our own tells that this process lives; behind a pooler ($8 differs) the lease alone does.
  session = (SELECT {session_id} FROM pg_stat_get_activity(pg_backend_pid()) a WHERE a.pid = $8)
WHERE id = $1
RETURNING ARRAY(SELECT r.breakers::text FROM {relay} r WHERE r.lease_until > now() AND r.id <> $1 ORDER BY r.id) AS others,
  drain_asked_by IS NOT NULL AS drain
