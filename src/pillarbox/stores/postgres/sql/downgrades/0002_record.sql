-- Drop the functions with which any program records events in SQL. Later events of their callers fail.

DROP FUNCTION
  {record}(text, text, text, text, text, jsonb, text, timestamptz, text, text, integer, text, text, text, timestamptz, boolean),
  {record}(text, jsonb, text, text, text, jsonb, text, timestamptz, text, text, integer, text, text, text, timestamptz, boolean);
