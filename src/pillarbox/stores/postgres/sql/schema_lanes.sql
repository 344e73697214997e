-- How many lanes there are.
SELECT count(*) FROM {lane}
