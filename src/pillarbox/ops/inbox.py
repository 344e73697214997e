"""Inbox records and consumer statistics, for the console, its API and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import ConsumerView
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.exports import written


class InboxView(NamedTuple):
    """Consumers, and the inbox records past their retention period, which the next pruning deletes."""

    consumers: list[ConsumerView]
    retention: float | None
    """Seconds that inbox records are kept; None: forever, or unknown."""
    expired_by_consumer: Mapping[str, int] | None
    """Older inbox records by consumer, lower bounds if `expired` is `COUNTED + 1`; None: unknown."""

    @property
    def expired(self) -> int | None:
        """Older inbox records; `COUNTED + 1` stands for that many or more, None: unknown."""
        return None if self.expired_by_consumer is None else sum(self.expired_by_consumer.values())

    def expired_of(self, consumer: str) -> int | None:
        """Return the older inbox records of a consumer; None: unknown."""
        return None if self.expired_by_consumer is None else self.expired_by_consumer.get(consumer, 0)

    @property
    def is_complete(self) -> bool:
        """Whether all older inbox records were counted."""
        return (self.expired or 0) <= COUNTED

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "consumers": [
                one._asdict()
                | {"last_failed_at": written(one.last_failed_at), "expired_records": self.expired_of(one.name)}
                for one in self.consumers
            ],
            "retention_seconds": self.retention,
            "expired_records": self.expired,
        }


async def read_inbox(store: AdminStore, *, retention: float | None, limit: int = 100) -> InboxView:
    """Read at most `limit` consumers, by name, in one statement; a second one counts what pruning would delete."""
    consumers = await store.admin.inspection.consumers(limit=limit)
    if retention is None:
        return InboxView(consumers, None, None)
    return InboxView(consumers, retention, await store.admin.archive.count_expired_inbox(retention))
