"""Relays inside an application: metrics of their listeners, and liveness."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pillarbox import Event, Handlers, NoRetry, Outbox, PermanentError, Relay, RelayConfig
from pillarbox.core.observations import BatchDelivered, BatchObserver, EventDelivered, Observation, RelayStateChanged
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.prometheus import RelayMetrics
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from pillarbox.transports.memory import MemoryTransport
from tests.servers.waiting import wait_until
from tests.unit.telemetry.exposed import value


def record(store: MemoryStore, *event_types: str) -> None:
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event(event_type, {}) for event_type in event_types))


async def test_deliveries_and_dead_letters_are_counted() -> None:
    store, handlers, metrics = MemoryStore(), Handlers(), RelayMetrics()

    @handlers.on("good", name="mailer")
    async def mail(event: ReceivedEvent, context: HandlerContext) -> None: ...

    @handlers.on("bad", name="printer")
    async def print_out(event: ReceivedEvent, context: HandlerContext) -> None:
        raise PermanentError("out of paper")

    record(store, "good", "bad", "good")
    await Relay(store=store, transports={"handlers": handlers}, retry=NoRetry(), observers=[metrics]).run_until_empty()
    good, bad = ({"destination": to, "event_type": kind} for to, kind in (("mailer", "good"), ("printer", "bad")))
    assert value(metrics.registry, "outbox_published_total", **good) == 2.0
    assert value(metrics.registry, "outbox_dead_lettered_total", **bad) == 1.0
    assert value(metrics.registry, "outbox_failed_total", **bad) == 1.0
    assert value(metrics.registry, "outbox_retries_total", **bad) == 0.0
    assert (value(metrics.registry, "outbox_batch_size_sum") or 0) >= 3.0
    assert (value(metrics.registry, "outbox_settle_duration_seconds_count") or 0) >= 1.0


class ByBatch(BatchObserver):
    """Keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[BatchDelivered] = []

    def __call__(self, observation: Observation) -> None:
        assert not isinstance(observation, EventDelivered)

    def delivered(self, batch: BatchDelivered) -> None:
        self.batches.append(batch)


async def test_messages_sent_together_are_announced_together() -> None:
    store, by_batch = MemoryStore(lanes=1), ByBatch()
    one_by_one: list[Observation] = []
    record(store, *["good"] * 20)
    relay = Relay(store=store, transports={"memory": MemoryTransport()}, observers=[by_batch, one_by_one.append])
    await relay.run_until_empty()
    assert len(by_batch.batches) < 20
    events = [event for batch in by_batch.batches for event in batch.events()]
    assert len(events) == 20
    assert [one for one in one_by_one if isinstance(one, EventDelivered)] == events


@pytest.mark.parametrize("is_async", [True, False])
async def test_handler_results_are_announced_together(is_async: bool) -> None:
    store, by_batch, handlers = MemoryStore(lanes=1), ByBatch(), Handlers()
    numbers: list[int] = []

    def handle(event: ReceivedEvent, context: HandlerContext) -> None:
        numbers.append(event.payload["n"])
        if event.payload["n"] == 100:
            raise PermanentError("not this one")

    async def ahandle(event: ReceivedEvent, context: HandlerContext) -> None:
        handle(event, context)

    handlers.on("*", name="h")(ahandle if is_async else handle)
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("good", {"n": number}) for number in range(200)))
    await Relay(store=store, transports={"handlers": handlers}, retry=NoRetry(), observers=[by_batch]).run_until_empty()
    assert sorted(numbers) == list(range(200))
    assert len(by_batch.batches) < 100
    assert sum(len(batch.messages) for batch in by_batch.batches) == 199
    assert (await store.admin.inspection.overview()).dead == 1


async def test_relays_of_one_process_share_a_listener() -> None:
    store, metrics = MemoryStore(), RelayMetrics()
    relays = [
        Relay(
            store=each,
            transports={"handlers": Handlers()},
            observers=[metrics],
            config=RelayConfig(heartbeat_interval="50ms"),
        )
        for each in (store, store.clone())
    ]

    async def shared() -> bool:
        lanes = value(metrics.registry, "outbox_lanes_owned")
        return (lanes, value(metrics.registry, "outbox_relays_running")) == (64.0, 2.0)

    async with relays[0], relays[1]:
        await eventually(shared)
    assert value(metrics.registry, "outbox_lanes_owned") == 0.0
    assert value(metrics.registry, "outbox_relays_running") == 0.0


async def test_gauges_are_announced_only_when_they_change() -> None:
    reported: list[Observation] = []
    relay = Relay(
        store=MemoryStore(),
        transports={"handlers": Handlers()},
        observers=[reported.append],
        config=RelayConfig(heartbeat_interval="20ms", poll_interval="20ms"),
    )
    rounds: set[float] = set()

    async def many_rounds() -> bool:
        if relay.silence is not None:
            rounds.add(round(asyncio.get_running_loop().time() - relay.silence, 3))
        return len(rounds) > 20

    async with relay:
        await eventually(many_rounds)
    held = [one for one in reported if isinstance(one, RelayStateChanged)]
    assert held[-1].lanes == 64
    assert len(held) < 10
    assert all(one != following for one, following in pairwise(held))


async def test_a_blocked_loop_stops_the_liveness_signal() -> None:
    store, handlers = MemoryStore(), Handlers()
    relay = Relay(store=store, transports={"handlers": handlers}, config=RelayConfig(heartbeat_interval="50ms"))
    assert relay.silence is None

    @handlers.on("*", name="blocking")
    async def block(event: ReceivedEvent, context: HandlerContext) -> None:
        wait_until(lambda: (relay.silence or 0) > 1, bound=90, what="it has been silent")  # blocks the whole loop

    async def goes_round() -> bool:
        return (
            relay.silence is not None and relay.silence < 0.5 and not (await store.admin.inspection.overview()).backlog
        )

    record(store, "anything")
    async with relay:
        await eventually(goes_round, within=90)
    assert relay.silence is None
