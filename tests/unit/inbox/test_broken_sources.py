"""A source or a retry policy that raises affects one message, not the consumer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pillarbox import ConfigurationError, Consumer, UnavailableError
from pillarbox.core.clock import RandomSource
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
    SourceRestored,
)
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.sources import incoming
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory_source import MemoryQueue, MemorySource


class Broken:
    """A delivery with acknowledgements that raise."""

    def __init__(self, delivery: Any, broken: tuple[str, ...], error: type[Exception]) -> None:
        self._delivery, self._broken, self._error = delivery, broken, error

    def __getattr__(self, name: str) -> Any:
        if name in self._broken and self._delivery.incoming.event_id == "bad":
            raise self._error(f"{self._error.__name__} in {name}")
        return getattr(self._delivery, name)


class BrokenSource(MemorySource):
    broken: tuple[str, ...] = ()
    error: type[Exception] = OverflowError

    async def receive(self) -> Any:
        return Broken(await super().receive(), self.broken, self.error)


class BrokenPolicy:
    def delay_after(self, attempt: int, rng: RandomSource) -> float | None:
        raise ZeroDivisionError("attempt")


@pytest.mark.parametrize(
    ("broken", "ends"),
    [(("retry",), "MessageDeadLettered"), (("retry", "reject"), "AckFailed")],
    ids=["retry", "retry and reject"],
)
async def test_an_acknowledgement_that_raises_affects_one_message(broken: tuple[str, ...], ends: str) -> None:
    reported = await _consumed(broken=broken)
    [end] = [one for one in reported if isinstance(one, (MessageDeadLettered, AckFailed))]
    assert (type(end).__name__, end.event_id, "OverflowError" in end.error) == (ends, "bad", True)


async def test_a_lost_acknowledgement_creates_no_dead_letter() -> None:
    reported = await _consumed(broken=("retry",), error=UnavailableError)
    [end] = [one for one in reported if isinstance(one, (MessageDeadLettered, AckFailed))]
    assert (type(end), end.event_id, end.error) == (AckFailed, "bad", "UnavailableError in retry")


async def test_a_misconfigured_broker_stops_the_consumer() -> None:
    consumer, _ = _consumer(("retry",), ConfigurationError)
    with pytest.raises(ConfigurationError, match="in retry"):
        async with asyncio.timeout(90):
            await consumer.run()


async def test_an_id_other_than_text_is_reported_as_text() -> None:
    queue, reported = MemoryQueue(), list[ConsumerObservation]()
    consumer = Consumer(
        MemorySource(queue), name="billing", transaction=MemoryStore().transaction, observers=[reported.append]
    )

    @consumer.on("*")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        raise AssertionError("its id cannot be kept")

    async with consumer:
        queue.put(incoming("\udcff", event_type="\ud800"))
        await eventually(lambda: [one for one in reported if isinstance(one, MessageDeadLettered)], within=30)
    [end] = [one for one in reported if isinstance(one, MessageDeadLettered)]
    assert (end.event_id.encode(), end.event_type.encode()) == (b"\\xdcff", b"\\xd800")


async def test_a_policy_that_raises_affects_one_message() -> None:
    reported = await _consumed(retry=BrokenPolicy())
    [end] = [one for one in reported if isinstance(one, MessageDeadLettered)]
    assert end.error == "ValueError: no; the retry policy raised ZeroDivisionError: attempt"


class RefusedValueError(Exception):
    """The error of a driver for a value that the database cannot store."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__("no such character in LATIN1")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(("sqlstate", "ends"), [("22P05", MessageDeadLettered), ("08006", HandlingFailed)])
async def test_an_id_that_the_database_rejects_is_not_an_outage(sqlstate: str, ends: type[Any]) -> None:
    @asynccontextmanager
    async def transaction() -> AsyncIterator[Any]:
        if sqlstate:
            raise RefusedValueError(sqlstate)
        yield

    queue, reported = MemoryQueue(), list[ConsumerObservation]()
    consumer = Consumer(MemorySource(queue), name="billing", transaction=transaction, observers=[reported.append])

    @consumer.on("*")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        raise AssertionError("there is no transaction to work in")

    async with consumer:
        queue.put(incoming("bad"))
        await eventually(lambda: [one for one in reported if isinstance(one, ends)], within=30)


async def test_the_end_of_an_outage_is_reported_without_a_message() -> None:
    source, reported = MemorySource(MemoryQueue()), list[ConsumerObservation]()
    consumer = Consumer(source, name="billing", transaction=MemoryStore().transaction, observers=[reported.append])

    async def met(kind: type[SourceFailed | SourceRestored]) -> list[ConsumerObservation]:
        return [one for one in reported if isinstance(one, kind)]

    @consumer.on("*")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        raise AssertionError("nothing was sent")

    async with consumer:
        source.outage()
        await eventually(lambda: met(SourceFailed), within=30)
        source.heal()
        await eventually(lambda: met(SourceRestored), within=30)
    [restored] = await met(SourceRestored)
    assert isinstance(reported[reported.index(restored) - 1], SourceFailed)


def _consumer(
    broken: tuple[str, ...], error: type[Exception], **settings: Any
) -> tuple[Consumer, list[ConsumerObservation]]:
    """A consumer that fails on the first of two messages, and its observations."""
    queue, reported = MemoryQueue(), list[ConsumerObservation]()
    source = BrokenSource(queue)
    source.broken, source.error = broken, error
    consumer = Consumer(
        source, name="billing", transaction=MemoryStore().transaction, observers=[reported.append], **settings
    )

    @consumer.on("*")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        if event.event_id == "bad":
            raise ValueError("no")

    queue.put(incoming("bad"))
    queue.put(incoming("good"))
    return consumer, reported


async def _consumed(
    broken: tuple[str, ...] = (), error: type[Exception] = OverflowError, **settings: Any
) -> list[ConsumerObservation]:
    consumer, reported = _consumer(broken, error, **settings)

    async def ended() -> bool:
        return sum(isinstance(one, (MessageDeadLettered, AckFailed, EventProcessed)) for one in reported) == 2

    async with consumer:
        await eventually(ended, within=90)
        assert [one.event_id for one in reported if isinstance(one, EventProcessed)] == ["good"]
        await asyncio.sleep(0)
    return reported
