-- The server's own settings that decide on what a commit means and on vacuum.
SELECT name, setting FROM pg_settings
WHERE name IN ('autovacuum', 'track_counts', 'fsync', 'full_page_writes', 'synchronous_commit')
