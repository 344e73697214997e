-- Fragment: is a row of the type, the key, the destination and the aggregate that were asked for, and has it that error?
(m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
 AND m.destination = coalesce(:destination, m.destination)
 AND (:aggregate_type IS NULL OR m.aggregate_type IS :aggregate_type)
 AND (:aggregate_id IS NULL OR m.aggregate_id IS :aggregate_id)
 AND (:error IS NULL OR instr(m.last_error, :error) > 0))
