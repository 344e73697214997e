"""A sender that could send but does not is a stall; a slow sender is not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.observations import (
    RelayStalled,
    RelayStallEnded,
)
from pillarbox.core.transport import Pace
from pillarbox.relay.routing import Route
from pillarbox.relay.send import Sender
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from tests.simulation.stage import Stage, ids
from tests.simulation.stalls import BOUND, LONG, SOON, run_scenario, waiting


def never_woken(monkeypatch: pytest.MonkeyPatch, over: Callable[[], asyncio.Event]) -> None:
    """Senders that are never woken."""
    pause = Sender._pause

    async def asleep(dispatch: Sender) -> None:
        await over().wait()
        await pause(dispatch)

    monkeypatch.setattr(Sender, "_pause", asleep)
    monkeypatch.setattr(Sender, "begin", lambda sender: sender._wakeups.send())


def test_a_free_sender_that_begins_no_send_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()
    never_woken(monkeypatch, lambda: over)

    async def scenario(stage: Stage) -> None:
        nonlocal over
        over = asyncio.Event()
        async with stage.running() as relay:
            await stage.rest(LONG)
            assert stage.seen(RelayStalled) == [], "nothing could be sent"
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: bool(stage.seen(RelayStalled)), within=BOUND + SOON)
            assert (stage.seen(RelayStalled)[0].stage, "a" in relay.stalled) == ("send", True)
            over.set()
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.until(lambda: bool(stage.seen(RelayStallEnded)), within=SOON)
            assert relay.stalled == ""

    run_scenario(scenario)


@pytest.mark.parametrize("gone", ["lost with its lane", "let go of"])
def test_a_sender_whose_messages_were_removed_is_not_stalled(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    over = asyncio.Event()
    never_woken(monkeypatch, lambda: over)

    async def scenario(stage: Stage) -> None:
        nonlocal over
        over = asyncio.Event()
        async with stage.running() as relay:
            stage.record(Event("a", {}, event_id="1", key="k"))
            await stage.until(lambda: relay._context.in_flight.has_sendable("a"), within=SOON)
            if gone == "let go of":
                # It is released in order to be discarded, and is never fetched again.
                await stage.store.admin.requests.add("discard", [("1", "")])
            else:
                stage.store._tables.remove(("1", ""))
                await stage.store.lanes.release(relay.id)
            await stage.until(lambda: len(relay._context.in_flight) == 0, within=SOON)
            await stage.rest(LONG)
            assert stage.seen(RelayStalled) == []
            over.set()

    run_scenario(scenario)


def test_a_stalled_sender_of_one_transport_is_reported_while_another_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collect = Sender._collect

    async def scenario(stage: Stage) -> None:
        still = MemoryTransport(clock=stage.simulation.clock)

        def one_collects(dispatch: Sender, transport: Any, sends: Any, **ways: Any) -> Any:
            return [] if transport is still else collect(dispatch, transport, sends, **ways)

        monkeypatch.setattr(Sender, "_collect", one_collects)
        options: dict[str, Any] = {
            "transports": {"memory": stage.transport, "still": still},
            "destinations": {
                "busy": MemoryAddress(name="busy", transport="memory"),
                "idle": MemoryAddress(name="idle", transport="still"),
            },
            "routes": [Route(event_type="idle", to=["idle"]), Route(to=["busy"])],
        }
        async with stage.running(**options):
            stage.record(Event("idle", {}, event_id="idle"))
            for number in range(int(BOUND + SOON)):
                stage.record(Event("busy", {}, event_id=str(number)))
                await stage.rest(1)
            assert len(stage.transport.deliveries) > BOUND
            assert [one.stage for one in stage.seen(RelayStalled)] == ["send"]

    run_scenario(scenario)


def test_a_sender_that_is_slow_but_sends_is_not_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stage: Stage) -> None:
        async def slowly(dispatch: Sender) -> None:
            await stage.rest(3)

        def only_after_a_pause(dispatch: Sender, transport: Any, sends: Any, *, ended: int = 0) -> Any:
            return [] if ended else collect(dispatch, transport, sends)

        collect = Sender._collect
        monkeypatch.setattr(Sender, "_pause", slowly)
        monkeypatch.setattr(Sender, "_collect", only_after_a_pause)
        transport = MemoryTransport(clock=stage.simulation.clock, pace=Pace(batch_size=1, concurrency=1))
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(100)))
        async with waiting(stage, transports={"memory": transport}):
            pass
        assert 10 < len(transport.deliveries) < 100

    run_scenario(scenario)
