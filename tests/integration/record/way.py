"""One kind of handle on one driver, with the same three moves for all of them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pillarbox import Event, Outbox

Open = Callable[[str], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One kind of handle on one driver."""

    name: str
    transaction: Open
    """A handle in a transaction that commits at the end of the block and rolls back on an exception."""
    savepoint: Callable[[Any], AbstractAsyncContextManager[Any]]
    autocommit: Open
    """A handle on which every statement commits by itself."""
    awaited: bool = False

    async def record(self, outbox: Outbox, handle: object, *events: Event) -> list[str]:
        if self.awaited:
            return await outbox.arecord(handle, *events)
        return outbox.record(handle, *events)

    def __str__(self) -> str:
        return self.name


def blocking(open_: Callable[[str], Any]) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        with open_(url) as handle:
            yield handle

    return opened
