-- Fragment: dead letters of one type, by its own index.
AND m.event_type = $2
