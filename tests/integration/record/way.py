"""A kind of connection on a driver, with one interface for all."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pillarbox import Event, Outbox

Open = Callable[[str], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One kind of connection on one driver."""

    name: str
    transaction: Open
    """A connection in a transaction that commits at the end of the block and rolls back on an exception."""
    savepoint: Callable[[Any], AbstractAsyncContextManager[Any]]
    autocommit: Open
    """A connection in autocommit mode."""
    awaited: bool = False

    async def record(self, outbox: Outbox, connection: Any, *events: Event) -> list[str]:
        if self.awaited:
            return await outbox.arecord(connection, *events)
        return outbox.record(connection, *events)

    def __str__(self) -> str:
        return self.name


def blocking(open_: Callable[[str], Any]) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        with open_(url) as connection:
            yield connection

    return opened
