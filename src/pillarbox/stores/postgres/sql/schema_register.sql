-- Remember that a migration was applied.
INSERT INTO {schema} (version, name) VALUES ({version}, '{migration}')
