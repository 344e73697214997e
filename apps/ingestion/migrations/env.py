"""Run by Alembic, on the connection and in the transaction of migrate.py."""

from alembic import context

from apps.ingestion.tables import metadata


def ours(name: str | None, kind: str, _parents: object) -> bool:
    """Alembic ignores the tables of the outbox in the same database."""
    return kind != "table" or name in metadata.tables


context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, include_name=ours)
with context.begin_transaction():
    context.run_migrations()
