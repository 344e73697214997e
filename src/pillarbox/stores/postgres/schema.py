"""The schema: versioned migrations, each applied once, by one process at a time; there are no down migrations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.core.lane import LANES
from pillarbox.core.store import SchemaStatus
from pillarbox.statements import IDENTIFIER, StatementSet
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import PostgresStatements

if TYPE_CHECKING:
    import asyncpg

    Driver = asyncpg.Connection[asyncpg.Record]

CONCURRENTLY = "(concurrently:"
"""In the first line of a migration: its statements run one by one, outside a transaction."""

LOCK_ATTEMPTS = 600
"""Attempts to get the lock, ten per second."""


DAYS_AHEAD = 7
"""Days of history for which partitions are created."""


class PostgresSchema:
    """See `pillarbox.core.store.Schema`."""

    def __init__(
        self,
        connection: Connection,
        statements: PostgresStatements,
        *,
        max_payload: int,
        migrations: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """migrations: version → (name, SQL); by default those of the package."""
        self._connection = connection
        self._statements = statements
        self._max_payload = max_payload
        self._limit = statements.get("schema_limit", max_payload=str(int(max_payload)))
        self._aliases = statements.script("compatibility_views")
        self._migrations = migrations or statements.migrations()
        self._required = max(self._migrations)

    def sql(self, *, aliases: bool = False) -> str:
        parts = [f'CREATE SCHEMA IF NOT EXISTS "{self._statements.names.schema}";']
        for version, (name, script) in self._migrations.items():
            parts += [script.rstrip(), self._register(version, name) + ";"]
        parts.append(self._limit + ";")
        if aliases:
            parts.append(self._aliases.rstrip())
        return "\n\n".join(parts) + "\n"

    def roles_sql(self, *, producer: str, relay: str, reader: str, migrator: str, owner: str) -> str:
        """The grants for four roles that exist already. Raises ConfigurationError for a name that is no identifier."""
        roles = {"producer": producer, "relay_role": relay, "reader": reader, "migrator": migrator, "owner": owner}
        for duty, role in roles.items():
            if not IDENTIFIER.fullmatch(role):
                raise ConfigurationError(f"{duty}: {role!r} is not a plain identifier")
        return self._statements.script("roles", **{duty: f'"{role}"' for duty, role in roles.items()})

    async def apply(self, *, aliases: bool = False) -> list[str]:
        async with self._connection.open() as connection:
            await self._lock(connection)
            try:
                # An index of a large table may take long.
                await connection.execute("SET statement_timeout = 0")
                return await self._apply(connection, aliases=aliases)
            finally:
                await connection.execute("RESET statement_timeout")
                await self._ask(connection, "schema_unlock")

    async def check(self) -> None:
        (await self.status()).demand()

    async def prepare(self) -> None:
        await self._connection.fetch(self._statements.get("create_history_days"), DAYS_AHEAD)

    async def status(self) -> SchemaStatus:
        async with self._connection.open() as connection:
            version = await self._version(connection)
            pending = tuple(name for number, (name, _) in self._migrations.items() if number > version)
            problems = await self._problems(connection) if version else []
        return SchemaStatus(version=version, required=self._required, pending=pending, problems=tuple(problems))

    def statements(self) -> StatementSet:
        return self._statements

    async def _lock(self, connection: Driver) -> None:
        """Become the only process that applies migrations. It polls: a statement that waits has a snapshot, and
        the concurrent index of the other process would wait for that snapshot, for ever."""
        for _ in range(LOCK_ATTEMPTS):
            if await self._ask(connection, "schema_lock"):
                return
            await asyncio.sleep(0.1)
        raise SchemaError(
            "another process has been applying the schema for a minute: wait for it, then repeat the command"
        )

    async def _apply(self, connection: Driver, *, aliases: bool) -> list[str]:
        if not await self._ask(connection, "schema_exists"):
            await connection.execute(self._statements.get("schema_create"))
        version = await self._version(connection)
        SchemaStatus(version=version, required=self._required).refuse_newer()
        ran: list[str] = []
        for number, (name, script) in self._migrations.items():
            if number > version:
                await self._migrate(connection, number, name, script)
                ran.append(name)
        if await self._ask(connection, "schema_limit_now") != self._max_payload:
            await connection.execute(self._limit)
        if aliases:
            async with connection.transaction():
                await connection.execute(self._aliases)
        return ran

    async def _migrate(self, connection: Driver, number: int, name: str, script: str) -> None:
        if CONCURRENTLY in script.split("\n", 1)[0]:
            for statement in re.split(r";\s*\n", script):
                if statement.strip():
                    await connection.execute(statement)
            await connection.execute(self._register(number, name))
            return
        async with connection.transaction():
            await connection.execute(script)
            await connection.execute(self._register(number, name))

    def _register(self, number: int, name: str) -> str:
        return self._statements.get("schema_register", version=str(number), migration=name)

    async def _version(self, connection: Driver) -> int:
        if not await self._ask(connection, "schema_has_migrations"):
            return 0
        return int(await self._ask(connection, "schema_version"))

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
