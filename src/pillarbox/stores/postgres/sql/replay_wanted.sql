-- Fragment: does a replay want a row? Of type $4, key $5, destination $6, recorded since $7 and before $8, of events $9; $10
-- says whether all go to one place.
m.event_type = coalesce($4, m.event_type) AND ($5::text IS NULL OR m.key = $5)
AND m.destination = coalesce($6, m.destination) AND m.recorded_at >= $7 AND m.recorded_at < $8
AND CASE WHEN $9::text[] IS NULL THEN NOT m.copy ELSE m.event_id = ANY ($9::text[]) END
-- An event goes once to each place, whatever the number of its deliveries.
AND NOT EXISTS (
  SELECT FROM {history} o
  WHERE o.event_id = m.event_id AND o.published_at <= m.published_at
    AND (o.published_at, o.id, o.destination) < (m.published_at, m.id, m.destination)
    AND o.destination = coalesce($6, CASE WHEN $10::boolean THEN o.destination ELSE m.destination END)
    AND o.recorded_at >= $7 AND o.recorded_at < $8)
