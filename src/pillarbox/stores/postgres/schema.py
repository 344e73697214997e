"""The schema: versioned migrations, each applied once, by one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.core.lane import LANES
from pillarbox.core.store import MigrationScript, SchemaStatus
from pillarbox.statements import IDENTIFIER, StatementSet
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.migrations import PostgresMigrations
from pillarbox.stores.postgres.statements import PostgresStatements

if TYPE_CHECKING:
    import asyncpg

    Driver = asyncpg.Connection[asyncpg.Record]

LOCK_ATTEMPTS = 600
"""Attempts to get the lock, ten per second."""


ENCODINGS = ("UTF8", "SQL_ASCII")
"""Encodings of a database that can store every text: errors, keys and ids may contain any character."""

DAYS_AHEAD = 7
"""Days of history for which partitions are created."""


class PostgresSchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(
        self,
        connection: PostgresStoreConnection,
        statements: PostgresStatements,
        *,
        max_payload: int,
        migrations: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """migrations: version → (name, SQL); by default those of the package."""
        self._connection = connection
        self._statements = statements
        self._max_payload = max_payload
        self._aliases = statements.script("compatibility_views")
        self._migrations = PostgresMigrations(statements, max_payload=max_payload, scripts=migrations)

    def sql(self, *, since: int = 0, aliases: bool = False) -> str:
        script = self._migrations.shell_script(since=since)
        return f"{script}\n{self._aliases.rstrip()}\n" if aliases else script

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        return self._migrations.scripts(since=since)

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        return self._migrations.downgrades(to=to, since=since, discard_pending=discard_pending)

    def roles_sql(self, *, producer: str, relay: str, reader: str, migrator: str, owner: str) -> str:
        """The grants for four roles that exist already. Raises ConfigurationError for an invalid name."""
        roles = {"producer": producer, "relay_role": relay, "reader": reader, "migrator": migrator, "owner": owner}
        for duty, role in roles.items():
            if not IDENTIFIER.fullmatch(role):
                raise ConfigurationError(f"{duty}: {role!r} is not a plain identifier")
        return self._statements.script("roles", **{duty: f'"{role}"' for duty, role in roles.items()})

    async def apply(self, *, aliases: bool = False) -> list[str]:
        async with self._connection.open() as connection:
            await self._lock(connection)
            try:
                await connection.execute(self._statements.get("schema_no_timeout"))
                return await self._apply(connection, aliases=aliases)
            finally:
                await connection.execute(self._statements.get("schema_reset_timeout"))
                await self._ask(connection, "schema_unlock")

    async def check(self) -> None:
        (await self.status()).demand()

    async def prepare(self) -> None:
        await self._connection.fetch(self._statements.get("create_history_days"), DAYS_AHEAD)

    async def status(self) -> SchemaStatus:
        async with self._connection.open() as connection:
            version, breaking = await self._version(connection)
            problems = await self._problems(connection) if version else []
        return self._migrations.status(version, breaking, problems=problems)

    def statements(self) -> StatementSet:
        return self._statements

    async def _lock(self, connection: Driver) -> None:
        """Become the only process that applies migrations. It polls: a statement that waits has a snapshot, and
        the concurrent index of the other process would wait for that snapshot, forever."""
        for _ in range(LOCK_ATTEMPTS):
            if await self._ask(connection, "schema_lock"):
                return
            await asyncio.sleep(0.1)
        raise SchemaError(
            "another process has been applying the schema for a minute: wait for it, then repeat the command"
        )

    async def _apply(self, connection: Driver, *, aliases: bool) -> list[str]:
        version, breaking = await self._version(connection)
        self._migrations.status(version, breaking).refuse_newer()
        if version == 0:
            _check_encoding(connection)
        ran: list[str] = []
        for script in self._migrations.after(version):
            async with nullcontext() if self._migrations.is_concurrent(script.version) else connection.transaction():
                for statement in script.statements:
                    await connection.execute(statement)
            ran.append(script.name)
        if await self._ask(connection, "schema_limit_now") != self._max_payload:
            await connection.execute(self._migrations.payload_limit)
        if aliases:
            async with connection.transaction():
                await connection.execute(self._aliases)
        return ran

    async def _version(self, connection: Driver) -> tuple[int, int]:
        """The newest version, and the newest that was not additive."""
        if not await self._ask(connection, "schema_has_migrations"):
            return 0, 0
        found = await connection.fetchrow(self._statements.get("schema_version"))
        return (0, 0) if found is None else (found[0], found[1])

    async def _problems(self, connection: Driver) -> list[str]:
        problems: list[str] = []
        if not await self._ask(connection, "schema_hash"):
            problems.append(
                "the database hashes lanes differently since an upgrade: stop producers, drain the outbox, "
                "then rewrite the column `lane`"
            )
        if await self._ask(connection, "schema_lanes") != LANES:
            problems.append(f"the table of lanes does not have its {LANES} rows: restore them")
        if (limit := await self._ask(connection, "schema_limit_now")) != self._max_payload:
            problems.append(
                f"the table takes payloads up to {limit} bytes, the settings say {self._max_payload}: "
                "run `pillarbox schema apply`"
            )
        return problems

    async def _ask(self, connection: Driver, statement: str) -> Any:
        return await connection.fetchval(self._statements.get(statement))


def _check_encoding(connection: Driver) -> None:
    """Raise SchemaError for a database that cannot store every text."""
    encoding = connection.get_settings().server_encoding
    if encoding not in ENCODINGS:
        raise SchemaError(
            f"the database has the encoding {encoding}, which lacks characters that events may contain; create a "
            "database with ENCODING 'UTF8'"
        )
