-- Make days of history ahead.
SELECT {history_make}($1::integer)
