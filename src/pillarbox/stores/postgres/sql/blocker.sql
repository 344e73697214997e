-- Fragment: the place of the first message that holds line s back; beyond every place if there is none.
SELECT least(
  (SELECT h.id FROM {message} h WHERE h.lane = s.lane AND h.key = s.key AND h.destination = s.destination AND ({is_head})
   ORDER BY h.id LIMIT 1),
  -- '' counts for all: whatever waits without a destination holds every line of its key …
  (SELECT h.id FROM {message} h WHERE s.destination <> '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination = '' AND ({is_head}) ORDER BY h.id LIMIT 1),
  (SELECT h.id FROM {message} h WHERE s.destination <> '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination = '' AND h.held = 'behind' ORDER BY h.id LIMIT 1),
  -- … and is held by all of them.
  (SELECT min(h.id) FROM {message} h WHERE s.destination = '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination > '' AND ({is_head})),
  (SELECT min(h.id) FROM {message} h WHERE s.destination = '' AND h.lane = s.lane AND h.key = s.key
   AND h.destination > '' AND h.held = 'behind'),
  (SELECT min(h.id) FROM {message} h WHERE h.lane = s.lane AND h.key = s.key AND {is_delayed}
   AND h.available_at <= now() AND (s.destination = '' OR h.destination IN ('', s.destination))),
  9223372036854775807)
