"""What a destination says of itself: it asks to wait, or it says that it is gone. In virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox import Destination, Event, Route
from pillarbox.core.errors import GoneError, SendError, UnavailableError
from pillarbox.core.observations import EventDeadLettered, Sending
from pillarbox.core.transport import Outgoing
from pillarbox.testing.lookup import find_event
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage, ids
from tests.simulation.test_ways_to_run import run_scenario

WAIT = 40.0
TWO: dict[str, Any] = {
    "destinations": {name: Destination(MemoryTransport.to(name)) for name in ("here", "there")},
    "routes": [Route(event_type="here", to=["here"]), Route(to=["there"])],
}


def events(destination: str, first: int, last: int) -> list[Event]:
    return [Event(destination, {}, event_id=f"{destination}-{n}", key=f"k{n}") for n in range(first, last)]


@pytest.mark.parametrize("outages", ["wait", "count"])
def test_a_destination_gets_nothing_before_the_time_that_it_asked_for(outages: str) -> None:
    async def scenario(stage: Stage) -> None:
        refused: list[float] = []

        def busy(one: Outgoing) -> SendError | None:
            if one.message.event_type == "here" and not refused:
                refused.append(stage.now)
                return UnavailableError("429", retry_after=WAIT)
            return None

        stage.transport.script(busy)
        async with stage.running(**TWO, tuned={"outages": outages}):
            stage.record(*events("here", 0, 1))
            await stage.until(lambda: bool(refused))
            stage.record(*events("there", 0, 5))
            await stage.until(lambda: len(stage.transport.deliveries) == 5, within=5)
            await stage.until(lambda: "here-0" in ids(stage.transport.deliveries), within=WAIT + 30)
            assert stage.now - refused[0] >= WAIT
        assert (await find_event(stage.store, "here-0"))[0].status == "PUBLISHED"

    run_scenario(scenario)


def test_a_message_that_is_accepted_meanwhile_does_not_shorten_the_wait() -> None:
    async def scenario(stage: Stage) -> None:
        sent: list[tuple[str, float]] = []

        def busy_once(one: Outgoing) -> SendError | None:
            sent.append((one.message.event_id, stage.now))
            return (
                UnavailableError("429", retry_after=WAIT)
                if sent[0][0] == one.message.event_id
                and len([name for name, _ in sent if name == one.message.event_id]) == 1
                else None
            )

        stage.transport.script(busy_once)
        async with stage.running(**TWO):
            stage.record(*events("here", 0, 3))
            await stage.until(lambda: bool(sent))
            asked = sent[0][1]
            stage.record(*events("here", 3, 6))
            await stage.until(lambda: len(stage.transport.deliveries) == 6, within=WAIT + 30)
        late = [at for name, at in sent if name in ("here-3", "here-4", "here-5")]
        assert min(late) - asked >= WAIT

    run_scenario(scenario)


def test_a_destination_that_is_gone_is_paused_for_all_relays_until_an_operator_resumes_it() -> None:
    async def scenario(stage: Stage) -> None:
        gone = True
        stage.transport.script(lambda one: GoneError("410 Gone") if gone and one.message.event_type == "here" else None)
        async with stage.running(**TWO, name="first"):
            stage.record(*events("here", 0, 3), *events("there", 0, 3))
            await stage.until(lambda: len(stage.transport.deliveries) == 3)

            async def paused() -> bool:
                return any(
                    row.paused and row.destination == "here" for row in await stage.store.destinations.overrides()
                )

            while not await paused():
                await stage.rest(0.5)
            [row] = [row for row in await stage.store.destinations.overrides() if row.destination == "here"]
            assert "410 Gone" in (row.last_error or "")
            async with stage.running(**TWO, name="second"):
                await stage.rest(10)
                before = len([one for one in stage.seen(Sending) if one.destination == "here"])
                stage.record(*events("here", 3, 6))
                await stage.rest(60)
                assert len([one for one in stage.seen(Sending) if one.destination == "here"]) == before
                gone = False
                await stage.store.admin.requests.override("here", paused=False, by="ann")
                await stage.until(lambda: len(stage.transport.deliveries) == 9)
        assert not stage.seen(EventDeadLettered)
        assert not any(row.paused for row in await stage.store.destinations.overrides())

    run_scenario(scenario)


def test_a_destination_that_is_still_gone_is_paused_again() -> None:
    async def scenario(stage: Stage) -> None:
        tried: list[float] = []

        def gone(one: Outgoing) -> SendError:
            tried.append(stage.now)
            return GoneError("410 Gone")

        stage.transport.script(gone)
        async with stage.running(**TWO):
            stage.record(*events("here", 0, 1))
            for attempt in (1, 2, 3):
                await stage.until(lambda wanted=attempt: len(tried) >= wanted)  # type: ignore[misc]  # a bound value
                while not [row for row in await stage.store.destinations.overrides() if row.paused]:
                    await stage.rest(0.5)
                await stage.store.admin.requests.override("here", paused=False, by="ann")
        assert (await find_event(stage.store, "here-0"))[0].attempts == 0

    run_scenario(scenario)
