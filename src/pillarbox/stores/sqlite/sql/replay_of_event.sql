-- Fragment: of what was delivered, only some events, by their own index.
AND m.event_id IN (SELECT value FROM json_each(:events))
