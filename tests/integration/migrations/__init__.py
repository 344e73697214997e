"""The tables are migrated by other tools: Alembic, Django, psql and drivers."""
