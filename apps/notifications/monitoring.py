"""How the outboxes of the application fare, for /metrics and /health."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, Gauge

from apps.notifications.database import DELIVERY_PREFIX, open_store
from pillarbox import PillarboxError

OUTBOXES = {"events": "outbox_", "deliveries": DELIVERY_PREFIX}
"""Business events, and what is to be delivered to users."""
PATIENCE = 3.0
"""Seconds that the database has to answer."""
MOST_BACKLOG = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits in one outbox."""

    backlog: int
    oldest_seconds: float
    """How long the oldest event has waited; 0 without any."""
    dead: int
    """Dead letters."""


class Outboxes:
    """Both outboxes. No connection is made before the first look; `aclose` it."""

    def __init__(self, url: str, *, registry: CollectorRegistry) -> None:
        self._stores = {name: open_store(url, prefix=prefix) for name, prefix in OUTBOXES.items()}
        self._backlog, self._oldest, self._dead = (
            Gauge(name, about, ["outbox"], registry=registry)
            for name, about in (
                ("notifications_backlog", "Events that are not delivered yet."),
                ("notifications_oldest_seconds", "How long the oldest of them has waited; 0 without any."),
                ("notifications_dead_letters", "Events that were dead-lettered."),
            )
        )

    async def look(self) -> dict[str, Backlog] | None:
        """What waits, by outbox; None: the database does not answer. The gauges show the same."""
        found = {}
        try:
            async with asyncio.timeout(PATIENCE):
                for name, store in self._stores.items():
                    seen = await store.admin.inspection.overview()
                    found[name] = Backlog(
                        backlog=seen.backlog, oldest_seconds=round(seen.oldest or 0.0, 3), dead=seen.dead
                    )
        except (PillarboxError, TimeoutError):
            for gauge in (self._backlog, self._oldest, self._dead):
                gauge.clear()  # an old figure would look like a good one
            return None
        for name, one in found.items():
            self._backlog.labels(name).set(one.backlog)
            self._oldest.labels(name).set(one.oldest_seconds)
            self._dead.labels(name).set(one.dead)
        return found

    async def refresh(self) -> None:
        """Bring the gauges up to date."""
        await self.look()

    async def aclose(self) -> None:
        for store in self._stores.values():
            await store.aclose()


async def backlog_health(outboxes: Outboxes, most_backlog: int = MOST_BACKLOG) -> tuple[bool, dict[str, object]]:
    """UP while the database answers and no backlog is beyond the limit; and the figures."""
    found = await outboxes.look()
    if found is None:
        return False, {"reason": "the database does not answer"}
    over = [f"more than {most_backlog} {name} wait" for name, one in found.items() if one.backlog > most_backlog]
    return not over, {"reason": "; ".join(over) or None} | {name: asdict(one) for name, one in found.items()}
