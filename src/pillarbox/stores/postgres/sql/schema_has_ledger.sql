-- Was any migration ever applied?
SELECT to_regclass('{schema}') IS NOT NULL
