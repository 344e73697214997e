"""Our own connections: opened when first needed, one statement at a time, replaced when broken.

No driver exception leaves this file, and no password enters a message: errors name host, port and database only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pillarbox.core.errors import ConfigurationError, PillarboxError, SchemaError, StoreUnavailable

if TYPE_CHECKING:
    import asyncpg

try:
    import asyncpg
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('PostgresStore needs asyncpg: pip install "pillarbox[postgres]"') from missing

# Schema-qualified SQL only, no just-in-time compilation of statements that take milliseconds, and no lock or open
# transaction that outlives its welcome.
SETTINGS: Mapping[str, str] = {
    "application_name": "pillarbox",
    "search_path": "pg_catalog",
    "timezone": "UTC",
    "jit": "off",
    "lock_timeout": "5s",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "30s",
}


class Connection:
    """One connection of our own."""

    def __init__(self, url: str, *, answer_within: float | None = None, **settings: str) -> None:
        """
        answer_within: seconds after which a server that says nothing at all is taken for gone: it is frozen, or the
            network swallows everything, and its own timeouts never reach us.
        """
        self._url = url
        self._answer_within = answer_within
        self._settings = dict(SETTINGS) | settings
        self._where = place_of(url)
        self._lock = asyncio.Lock()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def fetch(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Run one statement. Raises StoreUnavailable or SchemaError."""
        async with self.open() as connection, asyncio.timeout(self._answer_within):
            return await connection.fetch(sql, *arguments)

    async def execute(self, sql: str) -> None:
        """Run a script without arguments."""
        async with self.open() as connection:
            await connection.execute(sql)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
        """The connection, for one caller at a time; what the driver raises inside becomes our error."""
        async with self._lock:
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await asyncpg.connect(self._url, server_settings=self._settings, timeout=10)
                yield self._connection
            except asyncio.CancelledError:
                # The statement may still run on the server: its connection is of no use to the next caller.
                self._drop()
                raise
            except (
                OSError,
                TimeoutError,
                asyncpg.PostgresError,
                asyncpg.InterfaceError,
                asyncpg.InternalClientError,
            ) as error:
                if not isinstance(error, asyncpg.PostgresError):
                    self._drop()
                raise translated(error, self._where) from error

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


def place_of(url: str) -> str:
    """Host, port and database of a URL, without user and password. Raises ConfigurationError."""
    try:
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query))
        port = parts.port or asked.get("port", 5432)
    except ValueError:
        raise ConfigurationError("host or port in the store's URL cannot be read") from None
    if parts.scheme not in ("postgresql", "postgres"):
        raise ConfigurationError("the store's URL must begin with postgresql://, as in postgresql://app@db:5432/shop")
    if "@" in parts.path + parts.query + parts.fragment:
        # A / or ? or # in the password has cut the URL in two: what looks like a database is the password's end.
        raise ConfigurationError("user, password and host in the store's URL cannot be told apart; write / as %2F")
    return f"{parts.hostname or asked.get('host', 'local socket')}:{port}{parts.path}"


_SCHEMA_STATES = {"42P01": "a table", "42703": "a column", "42883": "a function", "3F000": "the schema"}


def translated(error: Any, where: str) -> PillarboxError:
    """Our error for a driver's."""
    state = getattr(error, "sqlstate", None)
    if state in _SCHEMA_STATES:
        return SchemaError(f"{_SCHEMA_STATES[state]} is missing in {where}: {error}; run `pillarbox schema apply`")
    if state == "42501":
        return SchemaError(f"permission denied in {where}: {error}; see `pillarbox schema sql --roles` for the grants")
    detail = f"{type(error).__name__}: {error}".rstrip(": ")
    return StoreUnavailable(f"PostgreSQL at {where} did not do it ({detail}); it is tried again")
