-- name: drop_prefix
-- Drop every table, view and routine whose name begins with the prefix.
DO $$
DECLARE
  thing pg_catalog.text;
BEGIN
  FOR thing IN
    SELECT pg_catalog.format('%s IF EXISTS %I.%I', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, n.nspname, c.relname)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '{schema}' AND pg_catalog.starts_with(c.relname, '{stem}')
      AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
    UNION ALL
    SELECT pg_catalog.format('ROUTINE IF EXISTS %s', p.oid::pg_catalog.regprocedure)
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = '{schema}' AND pg_catalog.starts_with(p.proname, '{stem}')
  LOOP
    EXECUTE 'DROP ' || thing || ' CASCADE';
  END LOOP;
END
$$
