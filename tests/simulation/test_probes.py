"""After a probe without information about its destination the next one is sent at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox import Destination, Event, FixedDelay, Route
from pillarbox.core.errors import NackedError, PermanentError, SendError, StoreUnavailableError, UnavailableError
from pillarbox.core.observations import BreakerChanged
from pillarbox.core.outcome import Resolved
from pillarbox.core.store import PriorSend
from pillarbox.core.transport import Outgoing
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage

WITHIN = 10.0
"""Seconds of virtual time: a few probes."""
TO = {"destinations": {"d": Destination(MemoryTransport.to("d"))}, "routes": [Route(to=["d"])]}


async def delivered_soon(stage: Stage, **options: Any) -> None:
    """Event 1 opens the breaker, the next event is its probe, then all are delivered."""
    async with stage.running(retry=FixedDelay(delay="200ms", max_attempts="unlimited"), **TO, **options):
        stage.record(Event("a", {}, event_id="1", key="k1"))
        await stage.rest(0.1)
        stage.record(Event("a", {}, event_id="2", key="k2"))
        await stage.rest(0.1)
        stage.record(*(Event("a", {}, event_id=f"{number}", key=f"k{number}") for number in range(3, 6)))
        await stage.until(lambda: not stage.store._tables.waiting, within=WITHIN)


@pytest.mark.parametrize(
    ("answer", "outages"),
    [(PermanentError("too large"), "wait"), (UnavailableError("lost"), "count")],
    ids=["permanent", "an outage that counts"],
)
def test_a_probe_that_fails_by_itself(answer: SendError, outages: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        answers: list[SendError] = [NackedError("full"), answer]
        stage.transport.script(lambda _: answers.pop(0) if answers else None)
        await delivered_soon(stage, tuned={"outages": outages})

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_a_probe_that_the_ledger_knows() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=True)
        # Event 2 was sent before: a relay crashed between the confirm and the settlement.
        stage.store._tables.write_ledger(("2", "d"), "SUCCESS")

        def full(one: Outgoing) -> NackedError | None:
            return NackedError("full") if one.message.event_id == "1" and stage.now < 1 else None

        stage.transport.script(full)
        await delivered_soon(stage)

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_a_probe_that_the_ledger_could_not_record() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=True)
        ledger = stage.store.ledger
        assert ledger is not None
        begin, calls = ledger.begin, 0

        async def begin_but_once(messages: Sequence[Resolved]) -> list[PriorSend]:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise StoreUnavailableError("deadlock detected")
            return await begin(messages)

        ledger.begin = begin_but_once  # type: ignore[method-assign]
        stage.transport.fail_next(NackedError("full"))
        await delivered_soon(stage)

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_messages_that_are_nacked_alone_leave_the_destination_available() -> None:
    """As many as fill whole batches: none of the others waits for a breaker."""

    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport.fail_when(
            lambda one: one.message.event_id.startswith("silent"), NackedError("partition 3 is silent", alone=True)
        )
        stage.record(*(Event("a", {}, event_id=f"silent {n}", key=f"k{n}") for n in range(200)))
        stage.record(*(Event("a", {}, event_id=f"other {n}", key=f"o{n}") for n in range(20)))
        async with stage.running(tuned={"batch_size": 20, "max_in_flight_batches": 1}, **TO):
            await stage.until(lambda: len(stage.transport.deliveries) == 20, within=WITHIN)
            assert not [one for one in stage.seen(BreakerChanged) if one.state == "open"]

    simulate(scenario, seed=1)


def test_a_probe_that_is_nacked_alone() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        answers: list[SendError] = [UnavailableError("lost"), NackedError("partition 3 is silent", alone=True)]
        stage.transport.script(lambda _: answers.pop(0) if answers else None)
        await delivered_soon(stage)

    for seed in range(5):
        simulate(scenario, seed=seed)
