-- Fragment: is a row of the type, the key and the destination that were asked for?
(m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
 AND m.destination = coalesce(:destination, m.destination))
