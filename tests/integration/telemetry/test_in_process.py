"""Relays inside an application: what their listeners count, and how one knows that a relay goes round."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from pillarbox import Event, Handlers, Never, Outbox, PermanentError, Relay, Tuning
from pillarbox.core.observations import Observation, RelayTended
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.prometheus import MetricsListener
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from tests.servers.waiting import wait_until
from tests.unit.telemetry.exposed import value


def record(store: MemoryStore, *event_types: str) -> None:
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event(event_type, {}) for event_type in event_types))


async def test_what_was_delivered_and_what_was_given_up_on_is_counted() -> None:
    store, handlers, metrics = MemoryStore(), Handlers(), MetricsListener()

    @handlers.on("good", name="mailer")
    async def mail(event: ReceivedEvent, context: HandlerContext) -> None: ...

    @handlers.on("bad", name="printer")
    async def print_out(event: ReceivedEvent, context: HandlerContext) -> None:
        raise PermanentError("out of paper")

    record(store, "good", "bad", "good")
    await Relay(store=store, transports={"handlers": handlers}, retry=Never(), observers=[metrics]).run_until_empty()
    good, bad = ({"destination": to, "event_type": kind} for to, kind in (("mailer", "good"), ("printer", "bad")))
    assert value(metrics.registry, "outbox_published_total", **good) == 2.0
    assert value(metrics.registry, "outbox_dead_total", **bad) == 1.0
    assert value(metrics.registry, "outbox_failed_total", **bad) == 1.0
    assert value(metrics.registry, "outbox_retries_total", **bad) == 0.0
    assert (value(metrics.registry, "outbox_batch_size_sum") or 0) >= 3.0
    assert (value(metrics.registry, "outbox_settle_duration_seconds_count") or 0) >= 1.0


async def test_relays_of_one_process_share_a_listener_and_add_up_to_all_lanes() -> None:
    store, metrics = MemoryStore(), MetricsListener()
    relays = [
        Relay(store=each, transports={"handlers": Handlers()}, observers=[metrics], tuning=Tuning(heartbeat="50ms"))
        for each in (store, store.beside())
    ]

    async def shared() -> bool:
        lanes = value(metrics.registry, "outbox_lanes_held")
        return (lanes, value(metrics.registry, "outbox_relays_running")) == (64.0, 2.0)

    async with relays[0], relays[1]:
        await eventually(shared)
    assert value(metrics.registry, "outbox_lanes_held") == 0.0
    assert value(metrics.registry, "outbox_relays_running") == 0.0


async def test_what_a_relay_holds_is_told_when_it_changes_and_not_all_the_time() -> None:
    told: list[Observation] = []
    relay = Relay(
        store=MemoryStore(),
        transports={"handlers": Handlers()},
        observers=[told.append],
        tuning=Tuning(heartbeat="20ms", poll_interval="20ms"),
    )
    rounds: set[float] = set()

    async def many_rounds() -> bool:
        if relay.silence is not None:
            rounds.add(round(asyncio.get_running_loop().time() - relay.silence, 3))
        return len(rounds) > 20

    async with relay:
        await eventually(many_rounds)
    held = [one for one in told if isinstance(one, RelayTended)]
    assert held[-1].lanes == 64
    assert len(held) < 10
    assert all(one != following for one, following in pairwise(held))


async def test_a_relay_whose_loop_is_blocked_grows_silent() -> None:
    store, handlers = MemoryStore(), Handlers()
    relay = Relay(store=store, transports={"handlers": handlers}, tuning=Tuning(heartbeat="50ms"))
    assert relay.silence is None

    @handlers.on("*", name="blocking")
    async def block(event: ReceivedEvent, context: HandlerContext) -> None:
        wait_until(lambda: (relay.silence or 0) > 1, bound=90, what="it has been silent")  # blocks the whole loop

    async def goes_round() -> bool:
        return relay.silence is not None and relay.silence < 0.5 and not (await store.inspection.overview()).backlog

    record(store, "anything")
    async with relay:
        await eventually(goes_round, within=90)
    assert relay.silence is None
