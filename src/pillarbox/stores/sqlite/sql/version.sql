-- The newest migration that ran here.
SELECT coalesce(max(version), 0) FROM {schema};
