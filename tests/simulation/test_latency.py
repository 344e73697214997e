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


def told(story: Callable[[Stage], Awaitable[None]], *, ledger: bool = False) -> None:
    async def staged(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=ledger)
        stage.transport = MemoryTransport(clock=simulation.clock, latency=LATENCY)
        await story(stage)

    for seed in range(5):
        simulate(staged, seed=seed)


def test_a_delivery_tells_how_long_its_send_took_and_not_how_long_it_waited() -> None:
    async def story(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="1"))
        await stage.rest(60)
        await stage.relay().run_until_empty()
        [event] = (await stage.store.admin.events.show("1")).events
        assert event.seconds == TOOK

    told(story)


@pytest.mark.parametrize("error", [RejectedError("no"), NackedError("full")], ids=["rejected", "nacked"])
def test_every_failed_send_tells_how_long_it_took(error: SendError) -> None:
    async def story(stage: Stage) -> None:
        stage.transport.fail_next(error, times=2)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running():
            await stage.until(lambda: len(stage.store._tables.history) == 1)
        tale = await stage.store.admin.events.show("1")
        assert [failed.seconds for failed in tale.failures] == [TOOK, TOOK]
        assert [event.seconds for event in tale.events] == [TOOK]

    told(story)


def test_a_send_without_an_answer_took_as_long_as_it_was_waited_for() -> None:
    async def story(stage: Stage) -> None:
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running(tuned={"outages": "count", "send_timeout": "2s"}):
            await stage.until(lambda: bool(stage.store._tables.attempts))
        [failed, *_] = (await stage.store.admin.events.show("1")).failures
        assert failed.error.startswith(UnavailableError.__name__)
        assert failed.seconds == pytest.approx(3, abs=0.01)

    told(story)


def test_what_cannot_be_composed_was_not_sent_though_its_neighbour_was() -> None:
    async def story(stage: Stage) -> None:
        stage.record(*(Event("a", {}, event_id=one, aggregate_id=one) for one in ("7", "seven")))
        place = Destination(MemoryTransport.to("a"), body=Envelope(numeric_id=True))
        await stage.relay(destinations={"a": place}, routes=[Route(to=["a"])]).run_until_empty()
        [sent], [spoiled] = [(await stage.store.admin.events.show(one)).events for one in ("7", "seven")]
        assert sent.seconds == TOOK
        assert spoiled.dead_lettered_at is not None
        [failed] = (await stage.store.admin.events.show("seven")).failures
        assert failed.seconds is None
        assert [died.seconds for died in stage.seen(EventDeadLettered)] == [0.0]

    told(story)


def test_what_finds_no_route_was_not_sent() -> None:
    async def story(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="1", destination="nowhere"))
        async with stage.running(destinations={"a": MemoryTransport.to("a")}):
            await stage.until(lambda: bool(stage.store._tables.attempts))
        [failed, *_] = (await stage.store.admin.events.show("1")).failures
        assert failed.seconds is None

    told(story)


def test_what_the_ledger_knows_was_not_sent_again() -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            stage.record(Event("a", {}, event_id="1"))
            await stage.relay().run_until_empty()
        assert [event.seconds for event in (await stage.store.admin.events.show("1")).events] == [TOOK, None]

    told(story, ledger=True)
