"""The schema: versioned migrations, each applied once, by one process at a time.

MariaDB commits after each statement that changes a table. So each statement of a migration can be repeated, and the
migration is entered as applied after its last one: if it is interrupted, the next `apply` continues.
"""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.core.lane import LANES
from pillarbox.core.store import MigrationScript, SchemaStatus
from pillarbox.statements import StatementSet
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.driver import execute
from pillarbox.stores.mariadb.history import HistoryDays
from pillarbox.stores.mariadb.migrations import MariaDBMigrations
from pillarbox.stores.mariadb.statements import MariaDBStatements

NO_ALIASES = "--aliases: mariadb:// has no compatibility views; read the view of events, or the tables"


class MariaDBSchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(
        self,
        connection: MariaDBStoreConnection,
        statements: MariaDBStatements,
        *,
        migrations: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """migrations: version → (name, SQL); by default those of the package."""
        self._connection = connection
        self._statements = statements
        self._migrations = MariaDBMigrations(statements, scripts=migrations)
        self._days = HistoryDays(connection, statements)
        self._lock = {"lock": f"pillarbox schema {connection.address.database}"[:64]}

    def sql(self, *, since: int = 0, aliases: bool = False) -> str:
        if aliases:
            raise ConfigurationError(NO_ALIASES)
        return self._migrations.shell_script(since=since)

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        return self._migrations.scripts(since=since)

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        return self._migrations.downgrades(to=to, since=since, discard_pending=discard_pending)

    async def apply(self, *, aliases: bool = False) -> list[str]:
        if aliases:
            raise ConfigurationError(NO_ALIASES)
        try:
            ran = await self._apply()
        finally:
            # Its session has other timeouts, and perhaps the lock.
            await self._connection.aclose()
        await self._days.create(move_all=True)
        return ran

    async def _apply(self) -> list[str]:
        sql = self._statements.get
        async with self._connection.open() as connection:
            [(locked,)] = (await execute(connection, sql("schema_lock"), self._lock)).rows
            if not locked:
                raise SchemaError(
                    "another process has been applying the schema for a minute: wait for it, then repeat the command"
                )
            await execute(connection, sql("schema_no_timeout"), {})
            tables = (await execute(connection, sql("schema_tables"), {})).rows
            version = breaking = 0
            if self._name("schema") in [name for name, _ in tables]:
                [(version, breaking)] = (await execute(connection, sql("schema_version"), {})).rows
            self._migrations.status(version, breaking).refuse_newer()
            ran: list[str] = []
            for script in self._migrations.after(version):
                for statement in script.statements:
                    await execute(connection, statement, {})
                ran.append(script.name)
            await execute(connection, sql("schema_unlock"), self._lock)
            return ran

    async def check(self) -> None:
        (await self.status()).demand()

    async def prepare(self) -> None:
        await self._days.create()

    async def status(self) -> SchemaStatus:
        sql = self._statements.get
        rows = await self._connection.fetch(sql("schema_tables"))
        tables: dict[str, str | None] = {str(name): engine for name, engine in rows}
        version = breaking = 0
        if self._name("schema") in tables:
            [(version, breaking)] = await self._connection.fetch(sql("schema_version"))
        problems = await self._problems(tables) if version else []
        return self._migrations.status(version, breaking, problems=problems)

    def statements(self) -> StatementSet:
        return self._statements

    async def _problems(self, tables: Mapping[str, str | None]) -> list[str]:
        problems = [
            f"the table {name} uses the storage engine {engine}; InnoDB is required: "
            f"ALTER TABLE `{name}` ENGINE = InnoDB"
            for name, engine in tables.items()
            if engine not in ("InnoDB", None)
        ]
        if self._name("lane") in tables:
            [(lanes,)] = await self._connection.fetch(self._statements.get("schema_lanes"))
            if lanes != LANES:
                problems.append(f"the table of lanes does not have its {LANES} rows: restore them")
        return problems

    def _name(self, table: str) -> str:
        return f"{self._statements.names.prefix}{table}"
