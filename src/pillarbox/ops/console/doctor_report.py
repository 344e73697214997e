"""The report of the doctor for a page, cached for half a minute."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.ops.doctor import Report, examine
from pillarbox.ops.settings import Settings

MAX_AGE = 30.0
"""Seconds for which a report is cached."""


class TimedReport(NamedTuple):
    """A report with its time."""

    report: Report
    at: datetime


class DoctorReportCache:
    """Runs the checks of the doctor, and caches the report."""

    def __init__(self, settings: Settings, store: AdminStore, *, clock: Clock | None = None) -> None:
        self._settings, self._store = settings, store
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._last: TimedReport | None = None
        self._stale_at = 0.0

    async def report(self) -> TimedReport:
        """Return a report that is at most `MAX_AGE` seconds old."""
        async with self._lock:
            if self._last is None or self._clock.monotonic() >= self._stale_at:
                self._last = TimedReport(await examine(self._settings, self._store), self._clock.now())
                self._stale_at = self._clock.monotonic() + MAX_AGE
            return self._last
