"""Sessions that were ended before their time. They are in the audit, so a restart and other consoles know them."""

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
FRESH = 5.0
"""Seconds after which the audit is looked at again: so late another console knows."""
_PAGE, _PAGES = 500, 20


class Logouts:
    """Whether a session was ended. `life`: seconds after which every session is over anyway."""

    def __init__(self, store: AdminStore, *, life: float, read_only: bool = False, clock: Clock | None = None) -> None:
        """read_only: what is ended here is known to this process alone."""
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
            _log.warning("a logout is known to this process alone, until it ends: %s", error)

    async def contains(self, number: str) -> bool:
        if self._clock.monotonic() >= self._stale_at:
            await self._look()
            self._stale_at = self._clock.monotonic() + FRESH
        return _mark(number) in self._known

    async def _look(self) -> None:
        wanted = AuditFilter(what=WHAT, since=self._clock.now() - timedelta(seconds=self._life))
        before: int | None = None
        for _ in range(_PAGES):
            page = await self._store.admin.audit.list(wanted, limit=_PAGE, before=before)
            self._known |= {entry.subject for entry in page.entries}
            if (before := page.before) is None:
                return


def _mark(number: str) -> str:
    """Says which session it was to those who know it, and nothing to others."""
    return hashlib.sha256(b"logout\0" + number.encode()).hexdigest()[:16]
