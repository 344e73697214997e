-- Fragment: does an earlier message of m's key wait for m's destination, or for ''? One probe per narrow index.
-- CASE, since SQLite evaluates both sides of an OR whose value is asked for.
CASE WHEN m.key IS NULL THEN 0
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE (h.held IN ('aside', 'blocked')
                          OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
                     AND h.key = m.key AND h.destination IN (m.destination, '') AND h.id < m.id) THEN 1
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE h.held = 'behind'
                     AND h.key = m.key AND h.destination IN (m.destination, '') AND h.id < m.id) THEN 1
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries = 0
                     AND h.key = m.key AND h.available_at <= {now}
                     AND (m.destination = '' OR h.destination IN (m.destination, '')) AND h.id < m.id) THEN 1
     WHEN m.destination <> '' THEN 0
     WHEN EXISTS (SELECT 1 FROM {message} AS h
                   WHERE (h.held IN ('aside', 'blocked')
                          OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
                     AND h.key = m.key AND h.id < m.id) THEN 1
     WHEN EXISTS (SELECT 1 FROM {message} AS h WHERE h.held = 'behind' AND h.key = m.key AND h.id < m.id) THEN 1
     ELSE 0
END
