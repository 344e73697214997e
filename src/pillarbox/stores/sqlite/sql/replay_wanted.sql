-- Fragment: does a replay want a row?
m.event_type = coalesce(:type, m.event_type) AND (:key IS NULL OR m.key IS :key)
  AND m.destination = coalesce(:destination, m.destination)
  AND m.recorded_at >= :since AND m.recorded_at < :until
  AND CASE WHEN :events IS NULL THEN json_type(m.headers, '$.replayof') IS NULL
           ELSE m.event_id IN (SELECT value FROM json_each(:events)) END
  -- An event goes once to each place, whatever the number of its deliveries.
  AND NOT EXISTS (
    SELECT 1 FROM {history} AS o
     WHERE o.event_id = m.event_id
       AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
       AND o.destination = coalesce(:destination, CASE WHEN :to IS NULL THEN m.destination ELSE o.destination END)
       AND o.recorded_at >= :since AND o.recorded_at < :until)
