-- The last number drawn for a message: its sequence knows, no table is looked at. Who may not see it is told 0.
SELECT coalesce(CASE WHEN has_sequence_privilege(s.name, 'SELECT') THEN pg_sequence_last_value(s.name::regclass) END, 0)
FROM (SELECT pg_get_serial_sequence('{message}', 'id') AS name) AS s
