-- Fragment: of what waits, only that which a relay has in hand.
AND (m.event_id, m.destination) IN (SELECT event_id, destination FROM hand)
