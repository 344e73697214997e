"""The store is read at most once per interval, however many requests there are."""

from __future__ import annotations

import asyncio

from pillarbox import Event, Outbox
from pillarbox.admin.admin import NoAdmin
from pillarbox.admin.overview import Overview
from pillarbox.core.clock import SystemClock
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.monitor.snapshot import MAX_AGE, SnapshotCache, StoreSnapshot
from pillarbox.stores.memory import MemoryStore


class ByHand(SystemClock):
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


def record(store: MemoryStore) -> None:
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("order.placed", {}))


def backlog(seen: StoreSnapshot) -> int:
    assert seen.overview is not None
    return seen.overview.backlog


async def test_a_snapshot_is_reused_while_it_is_fresh() -> None:
    store, clock = MemoryStore(), ByHand()
    cache = SnapshotCache(store, clock=clock)
    assert backlog(await cache.get()) == 0
    record(store)
    clock.at += MAX_AGE - 0.1
    assert backlog(await cache.get()) == 0
    clock.at += 0.1
    assert backlog(await cache.get()) == 1


async def test_concurrent_requests_share_a_snapshot() -> None:
    cache = SnapshotCache(MemoryStore(), clock=ByHand())
    first, *others = await asyncio.gather(*(cache.get() for _ in range(20)))
    assert all(other is first for other in others)


class UnavailableAdmin(NoAdmin):
    def __init__(self, store: UnavailableStore) -> None:
        super().__init__("away")
        self._away = store

    @property
    def inspection(self) -> UnavailableStore:  # type: ignore[override] # one of its methods is enough
        return self._away


class UnavailableStore(MemoryStore):
    """A store that can be made unavailable."""

    def __init__(self) -> None:
        super().__init__()
        self.away = True
        self.admin = UnavailableAdmin(self)  # type: ignore[assignment] # one of its facets is enough

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        if self.away:
            raise StoreUnavailableError("connection refused")
        return await MemoryStore().admin.inspection.overview()


async def test_an_unavailable_store_does_not_raise() -> None:
    store, clock = UnavailableStore(), ByHand()
    cache = SnapshotCache(store, clock=clock)
    seen = await cache.get()
    assert (seen.overview, seen.error) == (None, "connection refused")
    store.away = False
    clock.at += MAX_AGE
    assert (await cache.get()).overview is not None
