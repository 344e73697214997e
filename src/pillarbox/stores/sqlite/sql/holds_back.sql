-- Does any message hold later ones of its key back? One probe per narrow index; if none does, a fetch need not ask for each row.
SELECT EXISTS (SELECT 1 FROM {message} AS w
                WHERE w.held IN ('aside', 'blocked')
                   OR (w.held IS NULL AND w.available_at IS NOT NULL AND w.attempts + w.tries > 0))
    OR EXISTS (SELECT 1 FROM {message} AS w WHERE w.held = 'behind')
    OR EXISTS (SELECT 1 FROM {message} AS w
                WHERE w.held IS NULL AND w.available_at IS NOT NULL AND w.available_at <= {now});
