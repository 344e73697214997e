"""What the inbox remembers and what consumers met: the same on the page, in the API and on the command line."""

from __future__ import annotations

from typing import Any, NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import ConsumerView
from pillarbox.core.store import Retention
from pillarbox.ops.exports import written


class InboxView(NamedTuple):
    """Consumers, and the receipts that are old enough to go."""

    consumers: list[ConsumerView]
    retention: float | None
    """Seconds that receipts are kept; None: for ever, or nobody knows."""
    stale: int | None
    """Receipts that are older; `COUNTED + 1` stands for that many or more, None for nobody knows."""

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "consumers": [one._asdict() | {"last_failed_at": written(one.last_failed_at)} for one in self.consumers],
            "retention_seconds": self.retention,
            "stale_receipts": self.stale,
        }


async def look(store: AdminStore, *, retention: float | None, limit: int = 100) -> InboxView:
    """By name, at most `limit`; one statement, and one more where receipts are not kept for ever."""
    consumers = await store.admin.inspection.consumers(limit=limit)
    if retention is None:
        return InboxView(consumers, None, None)
    stale = await store.admin.archive.stale(Retention(receipts=retention))
    return InboxView(consumers, retention, stale.receipts)
