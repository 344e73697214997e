"""The store's connections: opened when first needed, one statement at a time, replaced when broken.

No driver exception leaves this file, and no password enters a message: errors name host, port and database only.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from pillarbox.core.errors import PillarboxError, RowsRefusedError, SchemaError, StoreUnavailableError
from pillarbox.statements import Names
from pillarbox.stores.mariadb import tls
from pillarbox.stores.mariadb.driver import (
    DRIVER_ERRORS,
    DriverConnection,
    Result,
    Rows,
    connect,
    error_number,
    error_text,
    execute,
    usable,
    wait_ended,
)
from pillarbox.stores.mariadb.statements import MariaDBStatements

_sql = MariaDBStatements(Names()).get
NEEDED = (10, 6)
"""The first version that has JSON_TABLE and SKIP LOCKED."""
CONNECT_WITHIN = 10.0
"""Seconds to connect, log in and prepare a session."""

T = TypeVar("T")
Step = tuple[str, Mapping[str, object]]
Steps = Generator[Step, Result, T]
"""The statements of a transaction with their parameters; each `yield` returns the result of its statement."""
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.\d{1,4}-MariaDB")


class MariaDBStoreConnection:
    """One of the store's connections."""

    def __init__(
        self,
        url: str,
        *,
        answer_within: float | None = None,
        binary_texts: bool = False,
        prepare: str = "",
        **settings: str,
    ) -> None:
        """
        answer_within: seconds after which a server that says nothing at all is taken for gone: it is frozen, or the
            network drops all packets, and its own timeouts never reach us.
        binary_texts: whether short binary columns are decoded as text.
        prepare: a statement that each session begins with.
        """
        self.address = tls.address_of(url)
        self._answer_within = answer_within
        more = "".join(_sql("session_setting", setting=name, value=value) for name, value in settings.items())
        self._settings = _sql("session_settings", more=more)
        self._binary_texts = binary_texts
        self._prepare = prepare
        self._lock = asyncio.Lock()
        self._connection: DriverConnection | None = None

    async def fetch(self, sql: str, given: Mapping[str, object] = {}) -> Rows:
        """Run one statement. Raises StoreUnavailableError, SchemaError or RowsRefusedError."""
        return (await self.run(sql, given)).rows

    async def run(self, sql: str, given: Mapping[str, object] = {}) -> Result:
        """Run one statement, and return its rows and how many it concerned."""
        async with self.open() as connection, asyncio.timeout(self._answer_within):
            return await execute(connection, sql, given)

    async def transact(self, steps: Steps[T], *, begin: Sequence[str] = ("START TRANSACTION",)) -> T:
        """Run the statements of a generator in one transaction. Raises what `fetch` raises."""
        async with self.open() as connection, asyncio.timeout(self._answer_within):
            for statement in begin:
                await execute(connection, statement, {})
            # A cancelled call does not roll back, because that would wait for a server that may be frozen: `open` ends
            # the connection, and with it the transaction.
            try:
                returned = await _driven(connection, steps)
            except Exception:
                if connection.connected:
                    await connection.rollback()
                raise
            await connection.commit()
            return returned

    async def snapshot(self, steps: Steps[T]) -> T:
        """Run statements that only read, all in the same snapshot."""
        return await self.transact(steps, begin=(_sql("snapshot_isolation"), _sql("begin_snapshot")))

    async def ended(self) -> None:
        """Return once the open connection has ended; never while none is open."""
        if self._connection is None:
            await asyncio.Event().wait()
        await wait_ended(self._connection)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DriverConnection]:
        """The connection, for one caller at a time; what the driver raises inside becomes our error."""
        async with self._lock:
            opening = True
            try:
                if self._connection is None or not usable(self._connection):
                    self._drop()
                    self._connection = await self._connected()
                opening = False
                yield self._connection
            except asyncio.CancelledError:
                # The statement may still run on the server: its connection is of no use to the next caller.
                self._drop()
                raise
            except DRIVER_ERRORS as error:
                number = error_number(error)
                # The server became a read-only replica: reconnect, because the address may now lead to the primary.
                if number < _FIRST_OF_SERVER or number in _LOST or self._connection is None:
                    self._drop()
                # The server's error would show values of rows in every traceback.
                raise translated(error, self.address.where, opening=opening) from (None if number else error)

    async def _connected(self) -> DriverConnection:
        # The driver bounds only the time to connect: a proxy may accept for a server that is gone.
        async with asyncio.timeout(CONNECT_WITHIN):
            connection = await connect(self.address, binary_texts=self._binary_texts)
            try:
                check_version(connection.get_server_info(), self.address.where)
                await execute(connection, self._settings, {})
                await execute(connection, _sql("session_isolation"), {})
                if self._prepare:
                    await execute(connection, self._prepare, {})
            except BaseException:
                connection.close()
                raise
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def aclose(self) -> None:
        """Close; closing twice is fine."""
        async with self._lock:
            if self._connection is not None:
                try:
                    async with asyncio.timeout(5):
                        await self._connection.ensure_closed()
                except DRIVER_ERRORS:
                    self._connection.close()
            self._connection = None


async def _driven(connection: DriverConnection, steps: Steps[T]) -> T:
    try:
        sql, given = next(steps)
        while True:
            sql, given = steps.send(await execute(connection, sql, given))
    except StopIteration as end:
        returned: T = end.value
        return returned


def check_version(server: str, where: str) -> None:
    """Raise SchemaError unless the server is a MariaDB that has what the statements need."""
    found = _VERSION.search(server)
    if found is None or (int(found[1]), int(found[2])) < NEEDED:
        raise SchemaError(f"the server at {where} is {server}; MariaDB {NEEDED[0]}.{NEEDED[1]} or newer is needed")


_FIRST_OF_SERVER = 1000
_CANNOT_CONNECT = 2003
# Read-only, shut down, killed, gone.
_LOST = {1053, 1290, 1792, 1836, 1927, *range(2000, 2100), 3169, 4031}
_MISSING = {1146: "a table", 1054: "a column", 1305: "a function"}
_FORBIDDEN = {1044, 1142, 1143, 1227, 1370, 1410}
_OURS = {1052}
"""A name in a statement that is ambiguous, which has the SQLSTATE of a constraint."""
# Without a SQLSTATE of class 22, 23 or 45: truncated, no default, incorrect, no partition, an error of a trigger.
_REFUSED = {1048, 1264, 1265, 1292, 1364, 1366, 1406, 1442, 1526, 1644, 1690}


def translated(error: BaseException, where: str, *, opening: bool) -> PillarboxError:
    """Our error for a driver's. opening: whether a connection was being opened."""
    number, said = error_number(error), error_text(error)
    if number in _MISSING:
        return SchemaError(f"{_MISSING[number]} is missing in {where}: {said}; run `{SchemaError.command}`")
    if number in _FORBIDDEN:
        return SchemaError(f"permission denied in {where}: {said}; see docs/reference/mariadb.md for the grants")
    state = getattr(error, "sqlstate", None) or ""
    if number in _REFUSED or (state[:2] in ("22", "23", "45") and number not in _OURS):
        return RowsRefusedError(f"MariaDB at {where} refuses a row: {said}")
    detail = f"{type(error).__name__}: {said}".rstrip(": ")
    if any(isinstance(layer, ssl.SSLError) for layer in (error, error.__cause__)) or "SSL" in said:
        return StoreUnavailableError(f"MariaDB at {where} cannot be trusted ({detail}): {tls.ADVICE}")
    unreachable = opening and (isinstance(error, OSError) or number == _CANNOT_CONNECT)
    return StoreUnavailableError(f"MariaDB at {where} failed: {detail}", unreachable=unreachable)
