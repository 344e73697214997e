-- Fragment: the smallest place that holds back what waits behind in the line s; the largest number if nothing does.
min(
  coalesce((SELECT min(h.id) FROM {message} AS h
             WHERE (h.held IN ('aside', 'blocked')
                    OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
               AND h.key = s.key AND (s.destination = '' OR h.destination IN (s.destination, ''))),
           9223372036854775807),
  coalesce((SELECT min(h.id) FROM {message} AS h
             WHERE h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries = 0
               AND h.key = s.key AND h.available_at <= {now}
               AND (s.destination = '' OR h.destination IN (s.destination, ''))),
           9223372036854775807),
  coalesce(CASE WHEN s.destination <> ''
                THEN (SELECT min(h.id) FROM {message} AS h
                       WHERE h.held = 'behind' AND h.key = s.key AND h.destination = '')
                ELSE (SELECT min(h.id) FROM {message} AS h
                       WHERE h.held = 'behind' AND h.key = s.key AND h.destination > '')
           END,
           9223372036854775807))
