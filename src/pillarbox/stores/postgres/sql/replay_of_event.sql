-- Fragment: of what was delivered, only some events, by their own index.
AND m.event_id = ANY ($9::text[])
