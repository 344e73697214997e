"""Operator requests. Only the owner of a lane changes what is pending in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pillarbox.admin.admin import NoAdmin
from pillarbox.admin.requests import KEEP, Action, Keep, changes
from pillarbox.core.store import ForcedBreakerState
from pillarbox.stores.memory.destinations import row_of
from pillarbox.stores.memory.tables import Identity, StoredRequest, Tables, atomic


class MemoryRequests:
    """See `pillarbox.admin.requests.Requests`."""

    def __init__(self, tables: Tables, admin: NoAdmin) -> None:
        self._tables = tables
        self._admin = admin

    @atomic
    def add(
        self,
        action: Action,
        events: Sequence[Identity],
        *,
        delay: float = 0,
        by: str = "",
        bulk_action: int | None = None,
    ) -> list[int]:
        numbers = [self._tables.next_number() for _ in events]
        for number, identity in zip(numbers, events, strict=True):
            self._tables.requests[number] = StoredRequest(
                action=action, identity=identity, delay=delay, by=by, at=self._tables.now()
            )
        return numbers

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        self._admin.refuse("requests to drain")

    @atomic
    def override(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: ForcedBreakerState | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        changed: dict[str, Any] = changes(paused=paused, breaker=breaker, rate_limit=rate_limit)
        row = row_of(self._tables, destination)
        row.override = row.override._replace(**changed)
        row.changed_by, row.changed_at = by, self._tables.now()
