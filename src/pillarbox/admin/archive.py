"""Old rows on their way out by way of a file: read whole, kept elsewhere, and only then dropped, exactly those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.store import Retention

Table = Literal["history", "dead"]


class Stale(NamedTuple):
    """How much is old enough to go; `COUNTED + 1` stands for that many or more."""

    history: int
    dead: int
    receipts: int
    ledger: int
    audit: int


class Archive(Protocol):
    """What was delivered or given up long ago, by the database's clock. What waits is never touched."""

    async def stale(self, kept: Retention) -> Stale:
        """How much was done with longer ago than it is kept."""
        ...

    async def read(
        self,
        table: Table,
        *,
        older: float,
        limit: int,
        after: EventDetail | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> list[EventDetail]:
        """Rows older than that many seconds, whole, by the time they were recorded, from behind `after` on; no more
        than have `max_bytes` of payload and headers, and at least one."""
        ...

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        """Drop exactly these rows; returns how many of them were still there."""
        ...
