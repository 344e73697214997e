"""However often somebody asks, the store is looked at no more than once in a while."""

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
    """A clock that moves when it is told to."""

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


async def test_a_look_is_good_for_a_while() -> None:
    store, clock = MemoryStore(), ByHand()
    cache = SnapshotCache(store, clock=clock)
    assert backlog(await cache.get()) == 0
    record(store)
    clock.at += MAX_AGE - 0.1
    assert backlog(await cache.get()) == 0
    clock.at += 0.1
    assert backlog(await cache.get()) == 1


async def test_many_who_ask_at_once_share_a_look() -> None:
    cache = SnapshotCache(MemoryStore(), clock=ByHand())
    first, *others = await asyncio.gather(*(cache.get() for _ in range(20)))
    assert all(other is first for other in others)


class AwayAdmin(NoAdmin):
    def __init__(self, store: Away) -> None:
        super().__init__("away")
        self._away = store

    @property
    def inspection(self) -> Away:  # type: ignore[override] # one of its methods is enough
        return self._away


class Away(MemoryStore):
    """A store that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.away = True
        self.admin = AwayAdmin(self)  # type: ignore[assignment] # one of its facets is enough

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        if self.away:
            raise StoreUnavailableError("nobody is at home")
        return await MemoryStore().admin.inspection.overview()


async def test_a_store_that_is_away_is_no_reason_to_raise() -> None:
    store, clock = Away(), ByHand()
    cache = SnapshotCache(store, clock=clock)
    seen = await cache.get()
    assert (seen.overview, seen.error) == (None, "nobody is at home")
    store.away = False
    clock.at += MAX_AGE
    assert (await cache.get()).overview is not None
