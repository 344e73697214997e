"""The duration of a send is stored with its outcome; a message that was never sent has no duration."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from pillarbox import Event
from pillarbox.core.errors import NackedError, RejectedError, SendError, UnavailableError
from pillarbox.core.observations import EventDeadLettered
from pillarbox.relay.envelope import Envelope
from pillarbox.relay.routing import Destination, Route
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage

LATENCY = 0.25
TOOK = pytest.approx(LATENCY, abs=1e-3)


def run_scenario(scenario: Callable[[Stage], Awaitable[None]], *, ledger: bool = False) -> None:
    async def staged(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=ledger)
        stage.transport = MemoryTransport(clock=simulation.clock, latency=LATENCY)
        await scenario(stage)

    for seed in range(5):
        simulate(staged, seed=seed)


def test_a_delivery_has_the_duration_of_its_send_without_its_waiting_time() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="1"))
        await stage.rest(60)
        await stage.relay().run_until_empty()
        [event] = (await stage.store.admin.events.show("1")).events
        assert event.seconds == TOOK

    run_scenario(scenario)


@pytest.mark.parametrize("error", [RejectedError("no"), NackedError("full")], ids=["rejected", "nacked"])
def test_every_failed_send_has_its_duration(error: SendError) -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.fail_next(error, times=2)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running():
            await stage.until(lambda: len(stage.store._tables.history) == 1)
        tale = await stage.store.admin.events.show("1")
        assert [failed.seconds for failed in tale.failures] == [TOOK, TOOK]
        assert [event.seconds for event in tale.events] == [TOOK]

    run_scenario(scenario)


def test_the_duration_of_a_send_without_a_result_is_its_waiting_time() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running(tuned={"outages": "count", "send_timeout": "2s"}):
            await stage.until(lambda: bool(stage.store._tables.attempts))
        [failed, *_] = (await stage.store.admin.events.show("1")).failures
        assert failed.error.startswith(UnavailableError.__name__)
        assert failed.seconds == pytest.approx(3, abs=0.01)

    run_scenario(scenario)


def test_a_message_that_cannot_be_encoded_is_not_sent_and_its_neighbour_is() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(*(Event("a", {}, event_id=one, aggregate_id=one) for one in ("7", "seven")))
        place = Destination(MemoryTransport.to("a"), body=Envelope(numeric_id=True))
        await stage.relay(destinations={"a": place}, routes=[Route(to=["a"])]).run_until_empty()
        [sent], [spoiled] = [(await stage.store.admin.events.show(one)).events for one in ("7", "seven")]
        assert sent.seconds == TOOK
        assert spoiled.dead_lettered_at is not None
        [failed] = (await stage.store.admin.events.show("seven")).failures
        assert failed.seconds is None
        assert [dead_letter.seconds for dead_letter in stage.seen(EventDeadLettered)] == [0.0]

    run_scenario(scenario)


def test_an_unroutable_message_was_not_sent() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="1", destination="nowhere"))
        async with stage.running(destinations={"a": MemoryTransport.to("a")}):
            await stage.until(lambda: bool(stage.store._tables.attempts))
        [failed, *_] = (await stage.store.admin.events.show("1")).failures
        assert failed.seconds is None

    run_scenario(scenario)


def test_a_message_known_to_the_ledger_was_not_sent_again() -> None:
    async def scenario(stage: Stage) -> None:
        for _ in range(2):
            stage.record(Event("a", {}, event_id="1"))
            await stage.relay().run_until_empty()
        assert [event.seconds for event in (await stage.store.admin.events.show("1")).events] == [TOOK, None]

    run_scenario(scenario, ledger=True)
