-- Which server process works for this connection, and did it hear what the connection asked for when it was opened?
SELECT pg_backend_pid(), current_setting('search_path') = 'pg_catalog, pg_temp'
