-- Note that a migration ran.
INSERT INTO {schema} (version, name) VALUES ({version}, '{migration}');
