"""The backlog of both outboxes, for /metrics and /health."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, Gauge

from apps.notifications.database import DELIVERY_TABLES, EVENT_TABLES, open_store
from pillarbox import PillarboxError

OUTBOXES = {"events": EVENT_TABLES, "deliveries": DELIVERY_TABLES}
"""Business events, and deliveries to users."""
DATABASE_TIMEOUT = 3.0
"""Seconds within which the database must respond."""
MAX_BACKLOG = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The backlog of one outbox."""

    backlog: int
    oldest_seconds: float
    """Age of the oldest pending event; 0 without any."""
    dead: int
    """Dead letters."""


class Outboxes:
    """Reads both outboxes. Connects on first use; close it with `aclose`."""

    def __init__(self, url: str, *, registry: CollectorRegistry) -> None:
        self._stores = {name: open_store(url, tables=tables) for name, tables in OUTBOXES.items()}
        self._backlog, self._oldest, self._dead = (
            Gauge(name, about, ["outbox"], registry=registry)
            for name, about in (
                ("notifications_backlog", "Events that are not delivered yet."),
                ("notifications_oldest_seconds", "Age of the oldest of them; 0 without any."),
                ("notifications_dead_letters", "Events that were dead-lettered."),
            )
        )

    async def read(self) -> dict[str, Backlog] | None:
        """Read the backlog of each outbox and update the gauges; None if the database does not respond."""
        found = {}
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT):
                for name, store in self._stores.items():
                    seen = await store.admin.inspection.overview()
                    found[name] = Backlog(
                        backlog=seen.backlog, oldest_seconds=round(seen.oldest or 0.0, 3), dead=seen.dead
                    )
        except (PillarboxError, TimeoutError):
            for gauge in (self._backlog, self._oldest, self._dead):
                gauge.clear()  # an outdated value would look current
            return None
        for name, one in found.items():
            self._backlog.labels(name).set(one.backlog)
            self._oldest.labels(name).set(one.oldest_seconds)
            self._dead.labels(name).set(one.dead)
        return found

    async def refresh(self) -> None:
        """Update the gauges."""
        await self.read()

    async def aclose(self) -> None:
        for store in self._stores.values():
            await store.aclose()


async def backlog_health(outboxes: Outboxes, max_backlog: int = MAX_BACKLOG) -> tuple[bool, dict[str, object]]:
    """UP while the database responds and no backlog exceeds the limit; with the backlogs."""
    found = await outboxes.read()
    if found is None:
        return False, {"reason": "the database does not respond"}
    over = [f"more than {max_backlog} {name} are pending" for name, one in found.items() if one.backlog > max_backlog]
    return not over, {"reason": "; ".join(over) or None} | {name: asdict(one) for name, one in found.items()}
