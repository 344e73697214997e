-- Fragment: is a row of the type, the key and the destination that were asked for?
m.event_type = coalesce($6, m.event_type) AND ($7::text IS NULL OR m.key = $7) AND m.destination = coalesce($8, m.destination)
