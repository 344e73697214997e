-- Is there a schema to put the tables in?
SELECT to_regnamespace('{schema_name}') IS NOT NULL
