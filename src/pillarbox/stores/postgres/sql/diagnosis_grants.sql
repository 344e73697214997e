-- Of the rights that a relay needs ($1 kinds, $2 names, $3 rights), those that this role does not have; what is missing
-- altogether is the schema's concern.
SELECT w.name, w.privilege
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(kind, name, privilege, n)
LEFT JOIN pg_namespace n ON n.nspname = $4
LEFT JOIN pg_class c ON w.kind IN ('TABLE', 'SEQUENCE') AND c.relnamespace = n.oid AND c.relname = w.name
LEFT JOIN pg_proc p ON w.kind = 'FUNCTION' AND p.pronamespace = n.oid AND p.proname = w.name
WHERE CASE w.kind WHEN 'SCHEMA' THEN NOT has_schema_privilege(n.oid, w.privilege)
                  WHEN 'FUNCTION' THEN NOT has_function_privilege(p.oid, w.privilege)
                  WHEN 'SEQUENCE' THEN NOT has_sequence_privilege(c.oid, w.privilege)
                  ELSE NOT has_table_privilege(c.oid, w.privilege) END
ORDER BY w.n
