-- How vacuum was told to treat the tables that change most.
SELECT c.relname, coalesce(c.reloptions, '{}') AS options FROM pg_class c
WHERE c.oid IN ('{message}'::regclass, '{lane}'::regclass, '{relay}'::regclass, '{destination}'::regclass)
ORDER BY c.relname
