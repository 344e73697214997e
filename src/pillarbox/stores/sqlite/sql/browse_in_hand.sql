-- Fragment: of what waits, only that which a relay has in hand.
AND m.event_id IN (SELECT event_id FROM hand)
