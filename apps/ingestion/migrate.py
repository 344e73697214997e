"""Creates and upgrades the tables: business tables by Alembic, those of the outbox by Pillarbox. Idempotent."""

from __future__ import annotations

import time
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import OperationalError

from apps.runtime.mariadb import lock_migrations
from apps.runtime.stores import Store
from pillarbox import SchemaError
from pillarbox.stores.mariadb import MariaDBStore

MIGRATIONS = Path(__file__).with_name("migrations")
LOCK = 8_081_001
"""The advisory lock of PostgreSQL that serializes concurrent migrations; MariaDB's has a name."""
PAUSE = 1.0


class NotMigrated(Exception):
    """The tables are missing or older than this code."""


def wait_for_database(engine: Engine, seconds: float) -> None:
    """Wait until the database accepts a connection. Raises OperationalError after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            with engine.connect():
                return
        except OperationalError:
            if time.monotonic() + PAUSE > end:
                raise
        time.sleep(PAUSE)


async def migrate(engine: Engine, store: Store) -> None:
    """Upgrade all tables, and create the compatibility view `outbox_events`, which MariaDB cannot have.

    MariaDB commits every statement: if a migration is interrupted there, run it again."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        elif connection.dialect.name == "mariadb":
            lock_migrations(connection, "ingestion")
        command.upgrade(alembic_config(connection), "head")
    await store.schema.apply(aliases=not isinstance(store, MariaDBStore))


async def check_migrated(engine: Engine, store: Store) -> None:
    """Raises NotMigrated, or OperationalError if the database is unavailable."""
    with engine.begin() as connection:
        found = MigrationContext.configure(connection).get_current_heads()
        wanted = ScriptDirectory.from_config(alembic_config(connection)).get_heads()
    if set(found) != set(wanted):
        raise NotMigrated(f"the tables are at {', '.join(found) or 'nothing'}, this code needs {', '.join(wanted)}")
    try:
        await store.schema.check()
    except SchemaError as error:
        raise NotMigrated("the outbox's tables are missing, or not those of this release") from error


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config
