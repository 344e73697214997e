-- Drop days of history that are old enough.
SELECT {history_drop}($1::interval)
