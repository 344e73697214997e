-- Is there a place for what is delivered tomorrow, other than the one for the rest?
SELECT to_regclass(format('{schema_name}.%I',
  '{prefix}history_' || to_char((now() AT TIME ZONE 'UTC')::date + 1, 'YYYYMMDD'))) IS NOT NULL
