"""asyncmy, behind functions with types: its own are incomplete. No other module of the store uses its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pillarbox.stores.mariadb.statements import bound
from pillarbox.stores.mariadb.timestamps import decode_time
from pillarbox.stores.mariadb.tls import MariaDBAddress

try:
    import asyncmy
    from asyncmy import converters
    from asyncmy.constants import CLIENT, FIELD_TYPE
    from asyncmy.errors import MySQLError
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('MariaDBStore needs asyncmy: pip install "pillarbox[mariadb]"') from missing

Rows: TypeAlias = Sequence[Sequence[Any]]
DriverConnection: TypeAlias = Any
"""`asyncmy.Connection`."""
DRIVER_ERRORS: tuple[type[Exception], ...] = (OSError, TimeoutError, EOFError, MySQLError)
"""What a connection raises."""
_asyncmy: Any = asyncmy


class Result(NamedTuple):
    """What a statement returned."""

    rows: Rows
    affected: int
    """Rows found, written or deleted."""


def _decoded(value: str | bytes) -> str:
    """A text of a binary column; those of other columns are decoded already."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _number(text: str) -> int | float:
    """A DECIMAL, the type of sums and of some other results: JSON and Python's counts know no such numbers."""
    return float(text) if "." in text else int(text)


_CONVERSIONS: dict[Any, Any] = dict(vars(converters)["conversions"])
_DECODERS = {**_CONVERSIONS, FIELD_TYPE.DATETIME: decode_time, FIELD_TYPE.NEWDECIMAL: _number}
# Keys are binary. The relay's fetches convert them in SQL, which is faster.
_TEXT_DECODERS = _DECODERS | dict.fromkeys((FIELD_TYPE.VAR_STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.STRING), _decoded)


async def connect(address: MariaDBAddress, *, binary_texts: bool) -> DriverConnection:
    """Open a connection in autocommit mode. `binary_texts`: short binary columns are decoded as text."""
    return await _asyncmy.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password.encode("utf-8", "surrogateescape"),  # the driver would encode a text as latin-1
        database=address.database,
        unix_socket=address.unix_socket,
        ssl=address.context(),
        charset="utf8mb4",
        conv=_TEXT_DECODERS if binary_texts else _DECODERS,
        client_flag=CLIENT.FOUND_ROWS,
        autocommit=True,
        program_name="pillarbox",
    )


async def execute(connection: DriverConnection, sql: str, given: Mapping[str, object]) -> Result:
    """Run one statement."""
    text, parameters = bound(sql, given) if given else (sql, None)
    async with connection.cursor() as cursor:
        await cursor.execute(text, parameters)
        rows: Rows = await cursor.fetchall() if cursor.description else ()
        return Result(rows, cursor.rowcount)


def usable(connection: DriverConnection) -> bool:
    """Whether the connection is open, as far as this side knows."""
    return bool(connection.connected) and not connection._stream_broken


async def wait_ended(connection: DriverConnection) -> None:
    """Return once the connection has ended; the driver has no public way to learn it.

    Shielded, because a wait that is cancelled would cancel the future, and with it every other wait.
    """
    await asyncio.shield(connection._proto._closed_waiter)


def error_number(error: BaseException) -> int:
    """The number of a driver's error: below 1000 or from 2000 on it is its own; 0 if the exception has none."""
    first = error.args[0] if error.args else None
    return first if isinstance(error, MySQLError) and isinstance(first, int) else 0


def error_text(error: BaseException) -> str:
    """What the server or the driver said, without values of rows."""
    if not isinstance(error, MySQLError):
        return str(error)
    said = str(error.args[-1]) if error.args else ""
    for mark in ("value: '", "entry '"):
        head, found, rest = said.partition(mark)
        _, ends, tail = rest.rpartition("' for ")
        if found and ends:
            return f"{head}{mark}…' for {tail}"
    return said
