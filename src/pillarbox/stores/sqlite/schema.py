"""The schema: versioned migrations, each applied once, by one process at a time; there are no down migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from pillarbox.core.store import SchemaStatus
from pillarbox.statements import StatementSet
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import SqliteStatements, each


class SqliteSchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(
        self,
        connection: Connection,
        statements: SqliteStatements,
        *,
        max_payload: int,
        migrations: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """migrations: version → (name, SQL); by default those of the package."""
        self._connection = connection
        self._statements = statements
        self._versions_table = statements.script("schema_migrations")
        self._payload_limit = statements.script("schema_limit", max_payload=str(int(max_payload)))
        self._aliases = statements.compatibility_views()
        self._objects = statements.get("schema_objects")
        self._version_query = statements.get("schema_version")
        self._migrations = migrations or statements.migrations()
        self._required = max(self._migrations)

    def sql(self, *, aliases: bool = False) -> str:
        parts = ["BEGIN IMMEDIATE;\n", self._versions_table, *self._missing(0), self._payload_limit]
        if aliases:
            parts.append(self._aliases)
        return "\n".join([*parts, "COMMIT;\n"])

    async def apply(self, *, aliases: bool = False) -> list[str]:
        def work(db: sqlite3.Connection) -> list[str]:
            version = self._version(db)
            SchemaStatus(version=version, required=self._required).refuse_newer()
            scripts = [] if self._has_versions_table(db) else [self._versions_table]
            scripts += [*self._missing(version), self._payload_limit]
            if aliases:
                scripts.append(self._aliases)
            for script in scripts:
                for statement in each(script):
                    db.execute(statement)
            return self._names_after(version)

        return await self._connection.write(work, make=True)

    async def check(self) -> None:
        (await self._found()).demand()

    async def prepare(self) -> None:
        """Nothing: the history is one table."""

    async def status(self) -> SchemaStatus:
        if self._connection.has_file:
            return await self._found()
        return SchemaStatus(version=0, required=self._required, pending=tuple(self._names_after(0)))

    def statements(self) -> StatementSet:
        return self._statements

    async def _found(self) -> SchemaStatus:
        def work(db: sqlite3.Connection) -> SchemaStatus:
            version = self._version(db)
            return SchemaStatus(
                version=version,
                required=self._required,
                pending=tuple(self._names_after(version)),
                problems=tuple(self._problems(db)) if version == self._required else (),
            )

        return await self._connection.read(work)

    def _missing(self, version: int) -> Iterator[str]:
        for number, (name, script) in self._migrations.items():
            if number > version:
                yield script
                yield self._statements.script("schema_register", version=str(number), migration=name)

    def _names_after(self, version: int) -> list[str]:
        return [name for number, (name, _) in self._migrations.items() if number > version]

    def _version(self, db: sqlite3.Connection) -> int:
        return int(db.execute(self._version_query).fetchone()[0]) if self._has_versions_table(db) else 0

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
