-- Of the indexes that the migrations made ($1), those that are not there or were never finished.
SELECT w.name, i.indexrelid IS NULL AS missing
FROM unnest($1::text[]) WITH ORDINALITY AS w(name, n)
LEFT JOIN (pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace s ON s.oid = c.relnamespace AND s.nspname = $2)
       ON c.relname = w.name
WHERE i.indexrelid IS NULL OR NOT i.indisvalid ORDER BY w.n
