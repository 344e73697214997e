"""What Alembic runs: always on the open connection that migrate.py hands over, in its transaction."""

from alembic import context

from apps.ingestion.tables import metadata


def ours(name: str | None, kind: str, _parents: object) -> bool:
    """The outbox's tables in the same database are not Alembic's business."""
    return kind != "table" or name in metadata.tables


context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, include_name=ours)
with context.begin_transaction():
    context.run_migrations()
