-- Fragment: dead letters of one event, by its own index.
AND m.event_id = $9
