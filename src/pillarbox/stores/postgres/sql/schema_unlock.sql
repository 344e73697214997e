-- Let the next process change the schema.
SELECT pg_advisory_unlock(hashtextextended('pillarbox schema {schema}', 0))
