-- May I be the one who changes the schema? Asked, not waited for: see `pillarbox.stores.postgres.schema`.
SELECT pg_try_advisory_lock(hashtextextended('pillarbox schema {schema}', 0))
