"""Sessions that ended by logout. They are in the audit log, for other consoles and after a restart."""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.audit import AuditFilter
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError

_log = logging.getLogger("pillarbox.console")

WHAT = "logout"
REFRESH_INTERVAL = 5.0
"""Seconds between two reads of the audit log: the delay after which other consoles reject the session."""
_PAGE, _PAGES = 500, 20


class Logouts:
    """Sessions that ended by logout; life: seconds after which every session expires."""

    def __init__(self, store: AdminStore, *, life: float, read_only: bool = False, clock: Clock | None = None) -> None:
        """read_only: logouts are not written to the audit log."""
        self._store, self._life, self._read_only = store, life, read_only
        self._clock = clock or SystemClock()
        self._known: set[str] = set()
        self._stale_at = 0.0

    async def add(self, number: str, *, by: str) -> None:
        self._known.add(_mark(number))
        if self._read_only:
            return
        try:
            await self._store.admin.audit.add(WHAT, _mark(number), by=by)
        except PillarboxError as error:
            _log.warning("a logout could not be written to the audit log and is lost when this process ends: %s", error)

    async def contains(self, number: str) -> bool:
        if self._clock.monotonic() >= self._stale_at:
            await self._refresh()
            self._stale_at = self._clock.monotonic() + REFRESH_INTERVAL
        return _mark(number) in self._known

    async def _refresh(self) -> None:
        wanted = AuditFilter(what=WHAT, since=self._clock.now() - timedelta(seconds=self._life))
        before: int | None = None
        for _ in range(_PAGES):
            page = await self._store.admin.audit.list(wanted, limit=_PAGE, before=before)
            self._known |= {entry.subject for entry in page.entries}
            if (before := page.before) is None:
                return


def _mark(number: str) -> str:
    """Return a hash that identifies the session without revealing its number."""
    return hashlib.sha256(b"logout\0" + number.encode()).hexdigest()[:16]
