"""Consumer statistics are counted, written periodically and kept on failure, without affecting the consumer."""

import asyncio

import pytest

from pillarbox import Consumer, Event, FixedDelay, Handlers, Outbox, Relay
from pillarbox.admin.overview import ConsumerView
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
    StatisticsFailed,
)
from pillarbox.inbox.statistics import EVERY, FOREGROUND_TIMEOUT, StatisticsWriter
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.sources import incoming
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.testing.simulation.clock import SimulatedClock
from pillarbox.transports.memory_source import MemorySource

EVENT = {"consumer": "billing", "event_id": "e1", "event_type": "order.placed"}
HANDLED = EventProcessed(**EVENT, attempt=1, seconds=0.5)


class Writer:
    """Writes statistics unless a failure is scripted."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.written: list[ConsumerStatistics] = []
        self.reported: list[ConsumerObservation] = []
        self.broken: BaseException | None = None
        self.takes = 0.0
        self.tallier = StatisticsWriter("billing", write=self.write, announce=self.reported.append, clock=clock)

    async def write(self, statistics: ConsumerStatistics) -> None:
        await asyncio.sleep(self.takes)
        if self.broken is not None:
            raise self.broken
        self.written.append(statistics)

    def count(self, *observations: ConsumerObservation) -> None:
        for observation in observations:
            self.tallier.count(observation)


def test_every_result_is_counted_and_outages_are_not() -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        book.count(
            HANDLED,
            HANDLED,
            DuplicateSkipped(**EVENT),
            MessageDeadLettered(**EVENT, attempt=7, error="never"),
            HandlingFailed(**EVENT, attempt=1, error="oh", delay=1, counted=True),
            HandlingFailed(**EVENT, attempt=1, error="no database", delay=1, counted=False),
            AckFailed(**EVENT, error="cut"),
            SourceFailed(consumer="billing", error="cut", delay=1),
        )
        await asyncio.sleep(4)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert book.written == [ConsumerStatistics("billing", 2, 1, 1, 1, "oh", 4.0)]

    simulate(scenario, seed=1)


def test_empty_statistics_are_not_written() -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        book.count(HANDLED)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert book.written == [ConsumerStatistics("billing", processed=1)]

    simulate(scenario, seed=1)


@pytest.mark.parametrize("broken", [OSError("no route\nto host"), SystemExit(1), asyncio.CancelledError()], ids=repr)
def test_a_failed_write_is_kept_and_logged_once(broken: BaseException) -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        book.broken = broken
        for _ in range(3):
            book.count(HANDLED, MessageDeadLettered(**EVENT, attempt=7, error="never"))
            await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert [type(one) for one in book.reported] == [StatisticsFailed]
        book.broken = None
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert book.written == [
            ConsumerStatistics("billing", processed=3, dead_lettered=3, last_error="never", failed_ago=0.0)
        ]
        book.broken = broken
        book.count(HANDLED)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert len(book.reported) == 2

    simulate(scenario, seed=1)


def test_a_write_that_hangs_times_out() -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        book.takes = 3600.0
        book.count(HANDLED)
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert simulation.clock.monotonic() == FOREGROUND_TIMEOUT
        assert book.reported == [StatisticsFailed(consumer="billing", error="TimeoutError")]

    simulate(scenario, seed=1)


def test_a_cancellation_is_raised_and_the_counts_are_kept() -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        book.takes = 1.0
        book.count(HANDLED)
        writing = asyncio.create_task(book.tallier.write(within=FOREGROUND_TIMEOUT))
        await asyncio.sleep(0.5)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await book.tallier.write(within=FOREGROUND_TIMEOUT)
        assert (book.written, book.reported) == ([ConsumerStatistics("billing", processed=1)], [])

    simulate(scenario, seed=1)


def test_without_a_running_consumer_statistics_are_written_every_ten_seconds() -> None:
    async def scenario(simulation: Simulation) -> None:
        book = Writer(simulation.clock)
        for _ in range(12):
            book.count(HANDLED)
            await book.tallier.write_if_due()
            await asyncio.sleep(1)
        assert [written.processed for written in book.written] == [1, 10]

    simulate(scenario, seed=1)


def test_a_running_consumer_writes_every_ten_seconds_and_when_it_stops() -> None:
    async def scenario(simulation: Simulation) -> None:
        store = MemoryStore(clock=simulation.clock)
        source = MemorySource(clock=simulation.clock)
        consumer = Consumer(
            source,
            name="billing",
            transaction=store.transaction,
            retry=FixedDelay(delay="1s", max_attempts=3),
            clock=simulation.clock,
        )

        @consumer.on("*")
        async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
            if event.event_id == "bad":
                raise ValueError(f"attempt {event.attempt}")

        for name in ("e1", "e2", "e3", "e1", "bad"):
            source.queue.put(incoming(name))
        async with consumer:
            await asyncio.sleep(EVERY - 1)
            assert await store.admin.inspection.consumers() == [ConsumerView("billing", 3)]
            await asyncio.sleep(2)
            [seen] = await store.admin.inspection.consumers()
            assert seen[:7] == ("billing", 3, 3, 1, 2, 1, "ValueError: attempt 3")
            source.queue.put(incoming("e4"))
            await asyncio.sleep(1)
        assert [view.processed for view in await store.admin.inspection.consumers()] == [4]

    simulate(scenario, seed=1)


def test_an_unavailable_transaction_does_not_delay_the_stop() -> None:
    async def scenario(simulation: Simulation) -> None:
        store, source = MemoryStore(clock=simulation.clock), MemorySource(clock=simulation.clock)
        consumer = Consumer(source, name="billing", transaction=store.transaction, clock=simulation.clock)

        @consumer.on("*")
        async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
            if event.event_id == "slow":  # no other block is entered before its own ends
                await asyncio.sleep(3600)

        async with consumer:
            for name in ("e1", "slow"):
                source.queue.put(incoming(name))
                await asyncio.sleep(EVERY / 2 + 1)
        drained = EVERY + 2 + 30
        assert drained <= simulation.clock.monotonic() <= drained + FOREGROUND_TIMEOUT
        assert [view.processed for view in await store.admin.inspection.consumers()] == [1]

    simulate(scenario, seed=1)


def test_in_process_statistics_are_written_when_the_handlers_close() -> None:
    async def scenario(simulation: Simulation) -> None:
        store, handlers = MemoryStore(clock=simulation.clock), Handlers()
        consumer = Consumer(name="billing", transaction=store.transaction, clock=simulation.clock)

        @consumer.on("*")
        async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
            if event.attempt < 3:
                raise ValueError(f"attempt {event.attempt}")

        handlers.add(consumer)
        with store.transaction() as transaction:
            Outbox().record(transaction, Event("order.placed", {}))
        relay = Relay(
            store=store,
            transports={"handlers": handlers},
            retry=FixedDelay(delay="0s", max_attempts=5),
            clock=simulation.clock,
        )
        await relay.run_until_empty()
        [seen] = await store.admin.inspection.consumers()
        assert (seen.processed, seen.failures, seen.last_error) == (0, 1, "ValueError: attempt 1")
        await handlers.aclose()
        [seen] = await store.admin.inspection.consumers()
        assert (seen.processed, seen.failures, seen.dead_lettered, seen.last_error) == (
            1,
            2,
            0,
            "ValueError: attempt 2",
        )

    simulate(scenario, seed=1)
