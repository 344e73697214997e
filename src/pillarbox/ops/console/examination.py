"""What the doctor finds, for a page. However often somebody asks, everything is examined once in half a minute."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.ops.doctor import Report, examine
from pillarbox.ops.settings import Settings

FRESH = 30.0


class Examined(NamedTuple):
    """A report, and when it was made."""

    report: Report
    at: datetime


class Examination:
    """The last report, made anew when it is too old."""

    def __init__(self, settings: Settings, store: AdminStore, *, clock: Clock | None = None) -> None:
        self._settings, self._store = settings, store
        self._clock = clock or SystemClock()
        self._turn = asyncio.Lock()
        self._last: Examined | None = None
        self._stale_at = 0.0

    async def last(self) -> Examined:
        async with self._turn:
            if self._last is None or self._clock.monotonic() >= self._stale_at:
                self._last = Examined(await examine(self._settings, self._store), self._clock.now())
                self._stale_at = self._clock.monotonic() + FRESH
            return self._last
