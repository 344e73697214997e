"""How Alembic runs here: on the connection that `database.migrate` hands over, in its transaction, one at a time."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, func, select

from apps.notifications.tables import metadata
from apps.runtime.mariadb import lock_migrations

ONE_AT_A_TIME = 0x6E6F7469
"""The number of PostgreSQL's advisory lock. MariaDB's has a name, and on SQLite the transaction itself is the lock."""


def run(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(ONE_AT_A_TIME)))
    elif connection.dialect.name == "mariadb":
        lock_migrations(connection, "notifications")
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
