-- The demo leaves nothing behind: shop and outbox lie in a schema of their own.
DROP SCHEMA {schema_name} CASCADE
