"""Inbox records and consumer statistics, for the console, its API and the command line."""

from __future__ import annotations

from typing import Any, NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import ConsumerView
from pillarbox.core.store import Retention
from pillarbox.ops.exports import written


class InboxView(NamedTuple):
    """Consumers, and the number of inbox records past their retention period."""

    consumers: list[ConsumerView]
    retention: float | None
    """Seconds that inbox records are kept; None: forever, or unknown."""
    stale: int | None
    """Older inbox records; `COUNTED + 1` stands for that many or more, None: unknown."""

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "consumers": [one._asdict() | {"last_failed_at": written(one.last_failed_at)} for one in self.consumers],
            "retention_seconds": self.retention,
            "expired_records": self.stale,
        }


async def read_inbox(store: AdminStore, *, retention: float | None, limit: int = 100) -> InboxView:
    """Read at most `limit` consumers, by name, in one statement; a second one counts old records."""
    consumers = await store.admin.inspection.consumers(limit=limit)
    if retention is None:
        return InboxView(consumers, None, None)
    stale = await store.admin.archive.count_expired(Retention(inbox=retention))
    return InboxView(consumers, retention, stale.inbox)
