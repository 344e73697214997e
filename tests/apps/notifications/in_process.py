"""Runs layers 1 and 2 in this process until the outbox is empty."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.notifications.embedded import embedded_relay
from tests.apps.notifications.app_database import AppDatabase

NIGHT = datetime(2026, 11, 10, 23, 30, tzinfo=UTC)


async def relay_all(app: AppDatabase, *, now: datetime = NIGHT) -> None:
    async with embedded_relay(app.url, app.engine, clock=lambda: now) as relay:
        await relay.run_until_empty()
