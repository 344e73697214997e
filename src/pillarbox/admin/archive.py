"""Archive: rows past their retention period are read in full, written elsewhere, and then deleted one by one.

Erasure: delivered messages of one aggregate are deleted whatever their age.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from pillarbox.admin.listing import EventDetail
from pillarbox.core.fetch import MAX_BYTES
from pillarbox.core.store import Retention

Table = Literal["history", "dead"]


class ExpiredCounts(NamedTuple):
    """Rows past their retention period; `COUNTED + 1` stands for that many or more."""

    history: int
    dead: int
    inbox: int
    ledger: int
    audit: int


class Archive(Protocol):
    """Reads and deletes old delivered and dead-lettered events, by the clock of the database; never pending ones."""

    async def count_expired(self, kept: Retention) -> ExpiredCounts:
        """Count the rows past their retention period."""
        ...

    async def count_expired_inbox(self, retention: float) -> dict[str, int]:
        """Count the inbox records older than `retention` seconds by consumer.

        At most `COUNTED + 1` records are counted, of all consumers together; the counts are then lower bounds.
        """
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
        """Return rows older than `older` seconds in full, in the order of recording, after the row `after`.

        The rows have at most `max_bytes` of payload and headers together, unless the first row has more.
        """
        ...

    async def erase(self, rows: Sequence[EventDetail], *, event_ids: Sequence[str], bulk_action: int) -> int:
        """Delete these delivered messages and the failed sends of these events; returns how many messages were deleted.

        The entry `bulk_action` of the audit counts them in the same transaction.
        """
        ...

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        """Delete exactly these rows; returns how many of them still existed."""
        ...
