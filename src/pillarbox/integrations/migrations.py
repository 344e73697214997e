"""The migrations of an outbox for the migration tool of a framework, by the name that the framework has for the engine.

No driver of ours is needed: the tool runs the statements on its own connection.
"""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.payload import Size, payload_limit
from pillarbox.dialects import find
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.stores.mariadb.migrations import MariaDBMigrations
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.migrations import Migrations
from pillarbox.stores.postgres.migrations import PostgresMigrations
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.sqlite.migrations import SqliteMigrations
from pillarbox.stores.sqlite.statements import SqliteStatements
from pillarbox.table_names import DEFAULT_TABLES, TableNames


def migrations_for(
    engine: str, *, tables: TableNames = DEFAULT_TABLES, max_payload: Size = DEFAULT_MAX_PAYLOAD
) -> Migrations:
    """The migrations for `postgresql`, `mysql`, `mariadb` or `sqlite`: SQLAlchemy's dialects and Django's vendors.

    Raises ConfigurationError for another engine.
    """
    limit = payload_limit(max_payload)
    match engine:
        case "postgresql":
            return PostgresMigrations(PostgresStatements(find("postgres").names(tables)), max_payload=limit)
        case "mysql" | "mariadb":
            return MariaDBMigrations(MariaDBStatements(find("mariadb").names(tables)))
        case "sqlite":
            return SqliteMigrations(SqliteStatements(find("sqlite").names(tables)), max_payload=limit)
        case _:
            raise ConfigurationError(
                f"Pillarbox has no tables for {engine!r}: use PostgreSQL, MariaDB or SQLite, or remove the migration"
            )


def version_number(version: str | int) -> int:
    """A version as a migration file names it: "0002" or 2, and "base" or 0 for no tables.

    Raises ConfigurationError for anything else. Not "head": a migration file must mean the same in every release.
    """
    if version == "base":
        return 0
    if isinstance(version, str) and version.isascii() and version.isdecimal():
        return int(version)
    if isinstance(version, int) and version >= 0:
        return version
    raise ConfigurationError(f"{version!r} is not a schema version: use a number such as '0002', or 'base'")
