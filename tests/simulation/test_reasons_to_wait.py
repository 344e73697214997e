"""A relay that has a reason to wait is not stalled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.errors import PermanentError, StoreUnavailableError
from pillarbox.core.observations import (
    BreakerChanged,
    RelayStalled,
    Sending,
    StoreFailed,
)
from pillarbox.core.store import EVERYWHERE
from pillarbox.core.transport import Pace
from pillarbox.relay.routing import Destination, Route
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from tests.simulation.stage import Stage, ids
from tests.simulation.stalls import BOUND, LONG, SOON, faulty, ledger_fails, run_scenario, settle_fails, waiting


async def idle(stage: Stage) -> None:
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))


async def paused(stage: Stage) -> None:
    await stage.store.admin.requests.override(EVERYWHERE, paused=True, by="ann")
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
        await stage.rest(1)


async def rate_limited(stage: Stage) -> None:
    places = {"slow": Destination(MemoryTransport.to("slow"), rate_limit="1/m")}
    async with waiting(stage, destinations=places, routes=[Route(to=["slow"])]):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(50)))
    assert 1 <= len(stage.transport.deliveries) < 50, "it was limited"


async def rate_limited_in_flight(stage: Stage) -> None:
    """The limit is set after many messages were fetched: they wait in flight."""
    transport = MemoryTransport(clock=stage.simulation.clock, latency=1, pace=Pace(batch_size=1, concurrency=1))
    async with waiting(stage, transports={"memory": transport}):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(50)))
        await stage.until(lambda: len(transport.deliveries) == 3)
        await stage.store.admin.requests.override("a", rate_limit=1 / 3600, by="ann")
    assert len(transport.deliveries) < 10, "it was limited"


async def unavailable(stage: Stage) -> None:
    stage.transport.outage()
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
    assert stage.seen(Sending) or stage.transport.deliveries == []


async def blocked_key(stage: Stage) -> None:
    stage.transport.fail_next(PermanentError("no"))
    async with waiting(stage, tuned={"on_exhausted": "block"}):
        stage.record(*(Event("a", {}, event_id=str(number), key="k") for number in range(5)))
    assert stage.transport.deliveries == []


async def long_handlers(stage: Stage) -> None:
    """One send at a time, and the first never ends: others of its key and of other keys wait."""
    pace = Pace(batch_size=1, concurrency=1, has_own_timeout=True)
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=f"{key}{number}", key=key) for key in "kl" for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def long_calls_of_one_handler(stage: Stage) -> None:
    """The calls occupy the whole share of the threads of one handler; others would still find one."""
    pace = Pace(
        batch_size=1, concurrency=8, has_own_timeout=True, capacity=lambda address, sending: 2 - sending.get(address, 0)
    )
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(5)))
    assert sum(len(one.messages) for one in stage.seen(Sending)) == 2
    assert stage.seen(BreakerChanged) == [], "it waits for calls of its own"


async def long_sends_beside_an_idle_transport(stage: Stage) -> None:
    """The idle transport has nothing to send."""
    pace = Pace(batch_size=1, concurrency=1, has_own_timeout=True)
    slow = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    options: dict[str, Any] = {
        "transports": {"idle": stage.transport, "slow": slow},
        "destinations": {"slow": MemoryAddress(name="slow", transport="slow")},
        "routes": [Route(to=["slow"])],
        "tuned": {"drain_timeout": "1s"},
    }
    async with waiting(stage, **options):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def one_long_handler(stage: Stage) -> None:
    """Senders are free, and the pending messages wait for the one in flight."""
    pace = Pace(batch_size=1, concurrency=10, has_own_timeout=True)
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=str(number), key="k") for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def no_store(stage: Stage) -> None:
    """Everything fails, also the renewal of the lease; then the store is available again."""
    over = asyncio.Event()
    over.set()
    for of, verbs in (
        (stage.store.messages, ("fetch", "orphaned_queues", "parked_destinations")),
        (stage.store.writes, ("settle", "execute_requests")),
        (stage.store.lanes, ("renew", "acquire", "join", "release")),
        (stage.store.destinations, ("overrides",)),
    ):
        for verb in verbs:
            faulty(of, verb, over, StoreUnavailableError("away"))
    async with waiting(stage):
        await stage.rest(1)
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: stage.transport.latch.held == 1, within=SOON)
        over.clear()
        stage.transport.latch.open()
        await stage.rest(LONG)
        assert stage.seen(StoreFailed)
        over.set()
    assert "1" in ids(stage.transport.deliveries)


async def ledger_failed(stage: Stage) -> None:
    """The ledger failed, and then the event was discarded."""
    over = asyncio.Event()
    ledger_fails(stage, over)
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: bool(stage.seen(StoreFailed)), within=SOON)
        await stage.store.admin.requests.add("discard", [("1", "")])
        await stage.until(lambda: not stage.store._tables.waiting, within=SOON)


async def draining(stage: Stage) -> None:
    """A relay that stops waits for its last decision until its drain timeout."""
    over = asyncio.Event()
    settle_fails(stage, over)
    relay = stage.relay(tuned={"drain_timeout": LONG})
    async with relay:
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
        relay.stop()
        await stage.rest(2 * BOUND)
        assert (stage.seen(RelayStalled), relay.stalled) == ([], "")
        over.set()


@pytest.mark.parametrize(
    "scenario",
    [
        idle,
        paused,
        rate_limited,
        rate_limited_in_flight,
        unavailable,
        blocked_key,
        long_handlers,
        long_calls_of_one_handler,
        long_sends_beside_an_idle_transport,
        one_long_handler,
        no_store,
        ledger_failed,
        draining,
    ],
)
def test_a_relay_with_a_reason_to_wait_is_not_stalled(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    run_scenario(scenario)
