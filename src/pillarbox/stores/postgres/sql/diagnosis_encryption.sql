-- Is this connection encrypted?
SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()
