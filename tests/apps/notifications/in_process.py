"""Both layers in this process, run until nothing waits."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.notifications.embedded import embedded_relay
from tests.apps.notifications.town import Town

NIGHT = datetime(2026, 11, 10, 23, 30, tzinfo=UTC)


async def carry(town: Town, *, now: datetime = NIGHT) -> None:
    async with embedded_relay(town.url, town.engine, clock=lambda: now) as relay:
        await relay.run_until_empty()
