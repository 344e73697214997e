"""While its database is unavailable an event stays in flight; it is handled within seconds of the database's return."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pillarbox import Consumer
from pillarbox.core.clock import SystemClock
from pillarbox.core.retry import MAX_RECONNECT_PAUSE
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation, EventProcessed, HandlingFailed
from pillarbox.inbox.outages import LONGEST_HOLD
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.sources import incoming
from pillarbox.transports.memory_source import MemoryQueue, MemorySource


class FastClock(SystemClock):
    """A clock whose sleeps return at once."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds
        self.pauses.append(seconds)
        await asyncio.sleep(0)


class Database:
    """A memory store that is unavailable until `back`, by the clock."""

    def __init__(self, clock: FastClock, *, back: float) -> None:
        self._clock, self._back, self._store = clock, back, MemoryStore()

    @contextmanager
    def transaction(self) -> Iterator[MemoryTransaction]:
        if self._clock.passed < self._back:
            raise ConnectionRefusedError("the database is unavailable")
        with self._store.transaction() as transaction:
            yield transaction


@pytest.mark.parametrize("outage", [0.5, 20.0, 45.0])
async def test_an_event_stays_in_flight_during_an_outage_and_is_handled_soon_after(outage: float) -> None:
    clock, queue, reported = FastClock(), MemoryQueue(), list[ConsumerObservation]()
    database = Database(clock, back=outage)
    consumer = Consumer(
        MemorySource(queue), name="billing", transaction=database.transaction, observers=[reported.append], clock=clock
    )

    @consumer.on("*")
    def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        handled.append(clock.passed)
        consumer.stop()

    handled: list[float] = []
    queue.put(incoming("e1"))
    await asyncio.wait_for(consumer.run(), 60)
    assert len(handled) == 1
    assert outage <= handled[0] <= outage + MAX_RECONNECT_PAUSE
    [failed] = [one for one in reported if isinstance(one, HandlingFailed)]
    assert (failed.event_id, failed.counted) == ("e1", False)
    assert "the database is unavailable" in failed.error
    assert [one.attempt for one in reported if isinstance(one, EventProcessed)] == [1]


async def test_a_held_event_is_returned_to_its_source_in_time() -> None:
    """Before the broker would close the channel; the source redelivers it."""
    clock, queue, reported = FastClock(), MemoryQueue(), list[ConsumerObservation]()
    consumer = Consumer(
        MemorySource(queue),
        name="billing",
        transaction=Database(clock, back=float("inf")).transaction,
        observers=[reported.append],
        clock=clock,
    )

    @consumer.on("*")
    def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        raise AssertionError("there is no transaction")

    @consumer.observe
    def stop(observation: ConsumerObservation) -> None:
        if isinstance(observation, HandlingFailed) and clock.passed >= LONGEST_HOLD:
            consumer.stop()

    queue.put(incoming("e1"))
    await asyncio.wait_for(consumer.run(), 60)
    assert clock.passed <= LONGEST_HOLD + 2 * MAX_RECONNECT_PAUSE
    assert [one.counted for one in reported if isinstance(one, HandlingFailed)] == [False, False]
