-- Fragment: is a row of the type, the key, the destination and the aggregate that were asked for, and has it that error?
m.event_type = coalesce($6, m.event_type) AND ($7::text IS NULL OR m.key = $7) AND m.destination = coalesce($8, m.destination)
AND ($14::text IS NULL OR m.aggregate_type = $14) AND ($15::text IS NULL OR m.aggregate_id = $15)
AND ($16::text IS NULL OR strpos(m.last_error, $16) > 0)
