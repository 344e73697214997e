-- Does any message hold later ones of its key back? One probe per narrow index; if none does, a fetch need not ask for each row.
SELECT EXISTS (SELECT 1 FROM {message} AS h
                WHERE h.held IN ('aside', 'blocked')
                   OR (h.held IS NULL AND h.available_at IS NOT NULL AND h.attempts + h.tries > 0))
    OR EXISTS (SELECT 1 FROM {message} AS h WHERE h.held = 'behind')
    OR EXISTS (SELECT 1 FROM {message} AS h
                WHERE h.held IS NULL AND h.available_at IS NOT NULL AND h.available_at <= {now});
