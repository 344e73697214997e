"""A cached snapshot of the store for HTTP requests.

Invariants: the store is queried at most once in a few seconds, on a separate connection, however many requests come;
a store that hangs delays a request for a bounded time, and never the relay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.statistics import COUNTED
from pillarbox.core.store import Override

MAX_AGE = 5.0
"""Seconds for which a snapshot is cached."""
RETRY_INTERVAL = 1.0
"""Seconds after which a failed query is retried."""
QUERY_TIMEOUT = 3.0
"""Timeout of a snapshot in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSnapshot:
    """A snapshot of the store."""

    overview: Overview | None
    """None: the query failed; `error` gives the reason."""
    overrides: Sequence[Override] = ()
    error: str = ""


class SnapshotCache:
    """Takes a snapshot on request, unless the last one is recent."""

    def __init__(self, store: AdminStore, *, counted: int = COUNTED, clock: Clock | None = None) -> None:
        """store: for exclusive use; the caller closes it. counted: maximum number of pending events to count."""
        self._store = store
        self._counted = counted
        self._clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._snapshot: StoreSnapshot | None = None
        self._expires_at = 0.0

    @property
    def destinations(self) -> set[str]:
        """Destinations known to relays at the last snapshot."""
        snapshot = self._snapshot.overview if self._snapshot is not None else None
        return {name for relay in snapshot.relays for name in relay.breakers} if snapshot is not None else set()

    async def get(self) -> StoreSnapshot:
        """Return a snapshot at most a few seconds old; an unavailable store raises nothing."""
        async with self._lock:
            if self._snapshot is None or self._clock.monotonic() >= self._expires_at:
                self._snapshot = await self._take()
                # A relay that waits for its store is ready as soon as the store is back.
                self._expires_at = self._clock.monotonic() + (
                    MAX_AGE if self._snapshot.overview is not None else RETRY_INTERVAL
                )
            return self._snapshot

    async def _take(self) -> StoreSnapshot:
        try:
            async with asyncio.timeout(QUERY_TIMEOUT):
                await self._store.schema.check()
                overview = await self._store.admin.inspection.overview(counted=self._counted)
                overrides = await self._store.destinations.overrides()
        except TimeoutError:
            return StoreSnapshot(overview=None, error=f"the store did not respond within {QUERY_TIMEOUT:g} s")
        except PillarboxError as error:
            return StoreSnapshot(overview=None, error=str(error))
        return StoreSnapshot(overview=overview, overrides=overrides)
