"""Times as PostgreSQL has them and Python does not: its years run from 4713 BC to 294276, and it has both infinities.

The driver fails on a year that Python's calendar does not reach, and with it the whole result. Here such a time becomes
`EARLIEST` or `LATEST`, so that one row never hides the others; in the other direction they stand for the infinities.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pillarbox.core.message import EARLIEST, LATEST

if TYPE_CHECKING:
    import asyncpg

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MINUS_INFINITY, _INFINITY = -(2**63), 2**63 - 1


async def install(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Make a connection read and write every time there is."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_encoded, decoder=_decoded, format="tuple"
    )


def _decoded(microseconds: tuple[int]) -> datetime:
    try:
        return _EPOCH + timedelta(0, 0, microseconds[0])
    except OverflowError:
        return LATEST if microseconds[0] > 0 else EARLIEST


def _encoded(time: datetime) -> tuple[int]:
    if time == EARLIEST:
        return (_MINUS_INFINITY,)
    if time == LATEST:
        return (_INFINITY,)
    return ((time - _EPOCH) // _MICROSECOND,)
