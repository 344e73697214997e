"""Alembic: operations that migrate the tables of an outbox, and a filter that keeps autogenerate away from them.

Import it in `env.py`, which registers `op.pillarbox_upgrade` and `op.pillarbox_downgrade`. Both run in the transaction
of the revision, on sync and async engines, and print SQL in offline mode (`alembic upgrade --sql`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pillarbox.core.payload import Size
from pillarbox.core.store import MigrationScript
from pillarbox.integrations.migrations import migrations_for, version_number
from pillarbox.ops.migration_files import sqlalchemy_text
from pillarbox.settings.shared import DEFAULT_MAX_PAYLOAD
from pillarbox.statements import Names
from pillarbox.stores.migrations import Migrations
from pillarbox.table_names import DEFAULT_TABLES, TableNames

try:
    from alembic.operations import MigrateOperation, Operations
    from sqlalchemy import inspect, text
    from sqlalchemy.schema import SchemaItem
except ImportError as missing:
    raise ImportError('the Alembic integration needs Alembic: pip install "pillarbox[alembic]"') from missing

IncludeObject: TypeAlias = Callable[[SchemaItem, str | None, str, bool, SchemaItem | None], bool]
"""What `include_object` of Alembic's `context.configure` accepts."""


def exclude_outbox(tables: TableNames = DEFAULT_TABLES, *, then: IncludeObject | None = None) -> IncludeObject:
    """An `include_object` for `context.configure` that hides the tables of an outbox from autogenerate.

    then: decides about all other objects; by default they are included. Without a schema in the name of a table,
    Alembic compares the default schema of the connection: the tables are then recognized by their names alone.
    """

    aliases = frozenset(Names(prefix=tables.prefix).aliases.values())

    def include(item: SchemaItem, name: str | None, kind: str, reflected: bool, compare_to: SchemaItem | None) -> bool:
        # An alias has the name of another outbox's table. A model of that name is the application's.
        is_model = name in aliases and (not reflected or compare_to is not None)
        if kind == "table" and name is not None and tables.owns(name) and not is_model:
            schema: str | None = getattr(item, "schema", None)
            if schema in (None, tables.schema):
                return False
        return then is None or then(item, name, kind, reflected, compare_to)

    return include


include_object: IncludeObject = exclude_outbox()
"""Hides the tables with the default prefix."""


@Operations.register_operation("pillarbox_upgrade")
class AlembicUpgrade(MigrateOperation):
    """The operation behind `op.pillarbox_upgrade`. Alembic copies the signature as text: its defaults are literals."""

    def __init__(self, *, to: int, since: int, tables: TableNames, max_payload: Size) -> None:
        self.to = to
        self.since = since
        self.tables = tables
        self.max_payload = max_payload

    @classmethod
    def pillarbox_upgrade(
        cls,
        operations: Operations,
        to: str | int,
        *,
        since: str | int = "base",
        tables: TableNames | None = None,
        max_payload: Size = DEFAULT_MAX_PAYLOAD,
    ) -> None:
        """Migrate the tables of an outbox to a version such as "0002". Does nothing if they have it already.

        since: the version before it. Only offline mode needs it, which cannot read the version of the tables.
        Raises ConfigurationError for a version that this release does not have.
        """
        upgrade = cls(
            to=version_number(to), since=version_number(since), tables=tables or DEFAULT_TABLES, max_payload=max_payload
        )
        operations.invoke(upgrade)


@Operations.register_operation("pillarbox_downgrade")
class AlembicDowngrade(MigrateOperation):
    """The operation behind `op.pillarbox_downgrade`."""

    def __init__(self, *, to: int, since: int | None, tables: TableNames, discard_pending: bool) -> None:
        self.to = to
        self.since = since
        self.tables = tables
        self.discard_pending = discard_pending

    @classmethod
    def pillarbox_downgrade(
        cls,
        operations: Operations,
        to: str | int,
        *,
        since: str | int | None = None,
        tables: TableNames | None = None,
        discard_pending: bool = False,
    ) -> None:
        """Undo the migrations after a version such as "0001". "base" drops the tables, with history and dead letters.

        "base" fails if events are pending, unless `discard_pending`. since: the version before, by default the newest
        of this release. Only offline mode needs it, which cannot read the version of the tables. Raises
        ConfigurationError for a version that this release does not have.
        """
        newest = None if since is None else version_number(since)
        downgrade = cls(
            to=version_number(to), since=newest, tables=tables or DEFAULT_TABLES, discard_pending=discard_pending
        )
        operations.invoke(downgrade)


@Operations.implementation_for(AlembicUpgrade)
def _upgrade(operations: Operations, wanted: AlembicUpgrade) -> None:
    migrations = migrations_for(_engine(operations), tables=wanted.tables, max_payload=wanted.max_payload)
    # Also a check that the release has this version.
    later = {script.version for script in migrations.scripts(since=wanted.to)}
    installed = wanted.since if operations.get_context().as_sql else _installed(operations, migrations, wanted.tables)
    for script in migrations.scripts(since=min(installed, migrations.newest)):
        if script.version not in later:
            _run(operations, migrations, script)


@Operations.implementation_for(AlembicDowngrade)
def _downgrade(operations: Operations, wanted: AlembicDowngrade) -> None:
    migrations = migrations_for(_engine(operations), tables=wanted.tables)
    since = wanted.since
    if not operations.get_context().as_sql:
        since = _installed(operations, migrations, wanted.tables)
    for script in migrations.downgrades(to=wanted.to, since=since, discard_pending=wanted.discard_pending):
        _run(operations, migrations, script)


def _engine(operations: Operations) -> str:
    return operations.get_context().dialect.name


def _installed(operations: Operations, migrations: Migrations, tables: TableNames) -> int:
    """The version of the tables; 0 if there are none."""
    connection = operations.get_bind()
    schema = tables.schema if connection.dialect.name == "postgresql" else None
    if not inspect(connection).has_table(f"{tables.prefix}schema", schema=schema):
        return 0
    version, _ = connection.execute(text(migrations.version_query)).one()
    return int(version)


def _run(operations: Operations, migrations: Migrations, script: MigrationScript) -> None:
    context = operations.get_context()
    for statement in script.statements:
        ended = f"{statement};"
        if context.as_sql and (shown := migrations.for_shell(ended)) != ended:
            context.impl.static_output(shown)
        else:
            operations.execute(text(sqlalchemy_text(statement)))
