"""The schema: versioned migrations, each applied once, by one process at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from pillarbox.core.store import MigrationScript, SchemaStatus
from pillarbox.statements import StatementSet
from pillarbox.stores.splitting import split_statements
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.migrations import SqliteMigrations
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqliteSchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(
        self,
        connection: SqliteStoreConnection,
        statements: SqliteStatements,
        *,
        max_payload: int,
        migrations: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """migrations: version → (name, SQL); by default those of the package."""
        self._connection = connection
        self._statements = statements
        self._aliases = statements.compatibility_views()
        self._objects = statements.get("schema_objects")
        self._version_query = statements.get("schema_version")
        self._migrations = SqliteMigrations(statements, max_payload=max_payload, scripts=migrations)

    def sql(self, *, since: int = 0, aliases: bool = False) -> str:
        parts = ["BEGIN IMMEDIATE;\n", self._migrations.shell_script(since=since)]
        if aliases:
            parts.append(self._aliases)
        return "\n".join([*parts, "COMMIT;\n"])

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        return self._migrations.scripts(since=since)

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        return self._migrations.downgrades(to=to, since=since, discard_pending=discard_pending)

    async def apply(self, *, aliases: bool = False) -> list[str]:
        def work(db: sqlite3.Connection) -> list[str]:
            version, breaking = self._version(db)
            self._migrations.status(version, breaking).refuse_newer()
            statements = [one for script in self._migrations.after(version) for one in script.statements]
            statements += split_statements(self._migrations.payload_limit)
            if aliases:
                statements += split_statements(self._aliases)
            for statement in statements:
                db.execute(statement)
            return list(self._migrations.names_after(version))

        return await self._connection.write(work, make=True)

    async def check(self) -> None:
        (await self._found()).demand()

    async def prepare(self) -> None:
        """Nothing: the history is one table."""

    async def status(self) -> SchemaStatus:
        if self._connection.has_file:
            return await self._found()
        return self._migrations.status(0, 0)

    def statements(self) -> StatementSet:
        return self._statements

    async def _found(self) -> SchemaStatus:
        def work(db: sqlite3.Connection) -> SchemaStatus:
            version, breaking = self._version(db)
            is_complete = version >= self._migrations.newest
            return self._migrations.status(version, breaking, problems=self._problems(db) if is_complete else ())

        return await self._connection.read(work)

    def _version(self, db: sqlite3.Connection) -> tuple[int, int]:
        """The newest version, and the newest that was not additive."""
        if not self._has_versions_table(db):
            return 0, 0
        [(version, breaking)] = db.execute(self._version_query)
        return version, breaking

    def _has_versions_table(self, db: sqlite3.Connection) -> bool:
        return ("table", f"{self._statements.names.prefix}schema") in self._objects_of(db)

    def _objects_of(self, db: sqlite3.Connection) -> dict[tuple[str, str], str]:
        return {(kind, name): sql for kind, name, sql in db.execute(self._objects)}

    def _problems(self, db: sqlite3.Connection) -> Iterator[str]:
        present = self._objects_of(db)
        for (kind, name), sql in self._objects_required().items():
            if (kind, name) not in present:
                yield f"the {kind} {name} is missing: restore it from `pillarbox schema sql`"
            elif name.endswith("message_payload_limit") and present[kind, name] != sql:
                yield "the limit for payloads in the table differs from max_payload: run `pillarbox schema apply`"

    def _objects_required(self) -> dict[tuple[str, str], str]:
        """What the script creates in an empty database."""
        model = sqlite3.connect(":memory:")
        try:
            model.executescript(self.sql())
            return self._objects_of(model)
        finally:
            model.close()
