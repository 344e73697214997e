"""The operation of our Django migrations: run the statements of one version of the tables on Django's connection."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.operations.base import Operation

from pillarbox.admin.admin import AdminSchema
from pillarbox.core.errors import SchemaError
from pillarbox.integrations.django.configuration import table_settings
from pillarbox.ops.wiring import open_store
from pillarbox.statements import StatementSet


class UpgradeTables(Operation):
    """Bring the tables from the version before to `version`; backwards, undo that.

    Tables that `pillarbox schema apply` has brought there already stay as they are. Backwards from the first version
    the tables are dropped, unless events are pending.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, version: int) -> None:
        self.version = version

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: no model of Django has these tables."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema = _schema(schema_editor.connection)
        # `sqlmigrate` collects the statements for an empty database.
        if schema_editor.collect_sql or installed_version(schema_editor.connection) < self.version:
            [script, *_] = schema.scripts(since=self.version - 1)
            _run(schema_editor, script.statements)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema = _schema(schema_editor.connection)
        if schema_editor.collect_sql or installed_version(schema_editor.connection) >= self.version:
            [script] = schema.downgrades(to=self.version - 1, since=self.version)
            _run(schema_editor, script.statements)

    def describe(self) -> str:
        return f"Upgrade the tables of Pillarbox to version {self.version}"

    @property
    def migration_name_fragment(self) -> str:
        return f"pillarbox_{self.version}"


def installed_version(connection: BaseDatabaseWrapper) -> int:
    """The version of the tables in a database of DATABASES; 0: there are none. Raises ConfigurationError."""
    statements = _statements(_schema(connection))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(statements.get("schema_has_migrations"))
            [(exists,)] = cursor.fetchall()
        else:
            exists = f"{statements.names.prefix}schema" in connection.introspection.table_names(cursor)
        if not exists:
            return 0
        cursor.execute(statements.get("schema_version"))
        [row] = cursor.fetchall()
    return int(row[0])


def required_version(connection: BaseDatabaseWrapper) -> int:
    """The version of the tables that this release needs. Raises ConfigurationError."""
    return _schema(connection).scripts()[-1].version


def _run(schema_editor: Any, statements: tuple[str, ...]) -> None:
    for statement in statements:
        schema_editor.execute(statement, params=None)  # None: a percent sign stays one


def _schema(connection: BaseDatabaseWrapper) -> AdminSchema:
    """The tables of a database. Neither address nor connection is used."""
    return open_store(table_settings(connection.alias).store).schema


def _statements(schema: AdminSchema) -> StatementSet:
    statements = schema.statements()
    if statements is None:
        raise SchemaError("the store sends no SQL; use PostgreSQL, MariaDB or SQLite")
    return statements
