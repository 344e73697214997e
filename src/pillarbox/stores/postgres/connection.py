"""Our own connections: opened when first needed, one statement at a time, replaced when broken.

No driver exception leaves this file, and no password enters a message: errors name host, port and database only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pillarbox.core.errors import (
    PillarboxError,
    RowsRefusedError,
    SchemaError,
    StoreUnavailableError,
)
from pillarbox.stores.postgres import timestamps, tls
from pillarbox.stores.postgres.hosts import Host, address_of

if TYPE_CHECKING:
    import asyncpg

try:
    import asyncpg
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('PostgresStore needs asyncpg: pip install "pillarbox[postgres]"') from missing

# Schema-qualified SQL only, no just-in-time compilation of statements that take milliseconds, and no lock or open
# transaction that stays open too long. ALTER ROLE and ALTER DATABASE can give other defaults for all of them: whatever
# could change the meaning or the success of a statement is set here.
SETTINGS: Mapping[str, str] = {
    "application_name": "pillarbox",
    # Named last, or PostgreSQL would search the temporary schema first.
    "search_path": "pg_catalog, pg_temp",
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "plan_cache_mode": "auto",
    "jit": "off",
    "lock_timeout": "5s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "30s",
    "idle_session_timeout": "0",
}


T = TypeVar("T")

_DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
READ_ONLY = "25006"
CONNECT_TIMEOUT = 10.0
"""Seconds for connecting, for all hosts of a URL together."""
PLAN_KEPT = 60
"""Seconds after which a statement is prepared again: a plan that was kept follows what the tables hold by then."""


class PostgresStoreConnection:
    """One of the store's connections."""

    def __init__(self, url: str, *, answer_within: float | None = None, internal: bool = True, **settings: str) -> None:
        """
        internal: whether it moves messages within the outbox; what records is a producer and has the table's limits.
        answer_within: seconds after which a server that says nothing at all is taken for gone: it is frozen, or the
            network drops all packets, and its own timeouts never reach us.
        """
        self.url = url
        self._answer_within = answer_within
        # '' leaves what the server, the role or the database has.
        self._settings = {name: value for name, value in (dict(SETTINGS) | settings).items() if value}
        if internal:
            # Read by the trigger that limits payloads: what moves was accepted before.
            self._settings["pillarbox.internal"] = "on"
        self._servers = address_of(url)
        self._preferred = 0
        """Which of several hosts accepted the last connection."""
        self._lock = asyncio.Lock()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._ended = asyncio.Event()

    async def fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Run one statement. Raises StoreUnavailableError or SchemaError."""
        async with self.open() as connection, asyncio.timeout(self._answer_within):
            return await connection.fetch(sql, *arguments)

    @property
    def is_open(self) -> bool:
        """Whether the next statement needs no new connection, as far as this side knows."""
        return self._connection is not None and not self._connection.is_closed()

    async def transact(
        self, steps: Generator[tuple[Any, ...], Sequence[Any], T], *, answer_within: float | None = None
    ) -> T:
        """Run the statements of a generator in one transaction; each `yield` returns rows.

        A statement is its text and its arguments. answer_within: seconds for all of them, instead of those of the
        connection. Raises StoreUnavailableError, SchemaError or RowsRefusedError.
        """
        longest = self._answer_within if answer_within is None else answer_within
        async with self.open() as connection, asyncio.timeout(longest):
            transaction = connection.transaction()
            await transaction.start()
            # A cancelled call does not roll back, because that would wait for a server that may be frozen: `open` ends
            # the connection, and with it the transaction.
            try:
                returned = await _driven(connection, steps)
            except Exception:
                if not connection.is_closed():
                    await transaction.rollback()
                raise
            await transaction.commit()
            return returned

    async def fetch_in_session(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Run one statement whose last argument is the process id that the server announced for this connection.

        A pooler announces one of its own: then the statement runs in a session that is not ours alone.
        """
        async with self.open() as connection, asyncio.timeout(self._answer_within):
            return await connection.fetch(sql, *arguments, connection.get_server_pid())

    async def ended(self) -> None:
        """Return once the open connection has ended; never while none is open."""
        await self._ended.wait()

    async def execute(self, sql: str) -> None:
        """Run a script without arguments."""
        async with self.open() as connection:
            await connection.execute(sql)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """The connection, for one caller at a time; what the driver raises inside becomes our error."""
        async with self._lock:
            opening = True
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._connected()
                opening = False
                yield self._connection
            except asyncio.CancelledError:
                # The statement may still run on the server: its connection is of no use to the next caller.
                self._drop()
                raise
            except (OSError, TimeoutError, *_DRIVER_ERRORS) as error:
                # The server became a read-only replica: reconnect, because the address may now lead to the primary.
                if not isinstance(error, asyncpg.PostgresError) or error.sqlstate == READ_ONLY:
                    self._drop()
                # The server's error would show its DETAIL in every traceback.
                hidden = isinstance(error, asyncpg.PostgresError)
                raise translated(error, self._servers.where, opening=opening) from (None if hidden else error)

    async def _connected(self) -> asyncpg.Connection[asyncpg.Record]:
        hosts = self._servers.hosts
        if len(hosts) < 2:
            return await self._connect(CONNECT_TIMEOUT)
        failures: list[str] = []
        for number in (*range(self._preferred, len(hosts)), *range(self._preferred)):
            host = hosts[number]
            try:
                connection = await self._connect(CONNECT_TIMEOUT / len(hosts), host)
            except (OSError, TimeoutError, *_DRIVER_ERRORS) as error:
                failures.append(f"{host}: {type(error).__name__}: {primary_message(error)}".removesuffix(": "))
                if isinstance(error, ssl.SSLError) or getattr(error, "sqlstate", "").startswith("28"):
                    raise  # A wrong certificate or password is for an operator to correct.
            else:
                self._preferred = number
                return connection
        raise ConnectionError("; ".join(failures))

    async def _connect(self, within: float, host: Host | None = None) -> asyncpg.Connection[asyncpg.Record]:
        """host: the one to try; None: the only one of the URL."""
        connection = await asyncpg.connect(
            self.url,
            server_settings=self._settings,
            timeout=within,
            ssl=tls.encryption(self.url),
            max_cached_statement_lifetime=PLAN_KEPT,
            target_session_attrs=self._servers.session,  # type: ignore[arg-type] # the stubs lack the texts
            host=None if host is None else host.name,
            port=None if host is None else host.port,
        )
        try:
            await timestamps.install(connection)
        except BaseException:
            connection.terminate()
            raise
        self._ended = ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def aclose(self) -> None:
        """Close; closing twice is fine."""
        async with self._lock:
            if self._connection is not None and not self._connection.is_closed():
                try:
                    await self._connection.close(timeout=5)
                except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    self._connection.terminate()
            self._connection = None


async def _driven(
    connection: asyncpg.Connection[asyncpg.Record], steps: Generator[tuple[Any, ...], Sequence[Any], T]
) -> T:
    try:
        sql, *arguments = next(steps)
        while True:
            sql, *arguments = steps.send(await connection.fetch(sql, *arguments))
    except StopIteration as end:
        returned: T = end.value
        return returned


_SCHEMA_STATES = {"42P01": "a table", "42703": "a column", "42883": "a function", "3F000": "the schema"}


# SQLSTATE classes that tell what is wrong with a row, for our own constraints and for what others attach to the tables:
# data exceptions, constraints, WITH CHECK OPTION, limits such as the size of an index entry, and errors of triggers.
_FACTS_ABOUT_ROWS = ("09", "21", "22", "23", "27", "2F", "38", "39", "44", "54", "P0")
# Routines of the server that refuse a row: a policy of row-level security (with the SQLSTATE of a missing grant), and a
# RAISE in a trigger, whatever the SQLSTATE but one of those that say what is wrong with the server.
_REFUSE_ROWS = ("ExecWithCheckOptions", "exec_stmt_raise")
_FACTS_ABOUT_SERVERS = ("08", "25", "40", "53", "55", "57", "58")


def translated(error: Any, where: str, *, opening: bool) -> PillarboxError:
    """Our error for a driver's, with the server's primary message only: DETAIL and CONTEXT show what is in rows.

    opening: whether a connection was being opened.
    """
    state = getattr(error, "sqlstate", None) or ""
    said = primary_message(error)
    if state in _SCHEMA_STATES:
        return SchemaError(f"{_SCHEMA_STATES[state]} is missing in {where}: {said}; run `{SchemaError.command}`")
    refused = getattr(error, "server_source_function", None) in _REFUSE_ROWS and state[:2] not in _FACTS_ABOUT_SERVERS
    if state[:2] in _FACTS_ABOUT_ROWS or refused:
        return RowsRefusedError(f"PostgreSQL at {where} refuses a row: {said}")
    if state == "42501":
        grants = "see `pillarbox schema sql --roles` for the grants"
        return SchemaError(f"permission denied in {where}: {said}; {grants}", forbidden=True)
    detail = f"{type(error).__name__}: {said}".rstrip(": ")
    if isinstance(error, ssl.SSLError) or "rejected SSL upgrade" in said:
        return StoreUnavailableError(f"PostgreSQL at {where} cannot be trusted ({detail}): {tls.ADVICE}")
    unreachable = opening and isinstance(error, OSError)
    return StoreUnavailableError(f"PostgreSQL at {where} failed: {detail}", unreachable=unreachable)


def primary_message(error: BaseException) -> str:
    """What the server or the driver said, without DETAIL, HINT and CONTEXT, and without values of arguments."""
    said = str(error.args[0]) if isinstance(error, asyncpg.PostgresError) and error.args else str(error)
    return said.partition(": ")[0] if said.startswith("invalid input for query argument") else said
