-- Fragment: of what was delivered, only one type, by its own index.
AND m.event_type = $4
