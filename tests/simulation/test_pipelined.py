"""Pipelined and strict ordering side by side: the effect of a rejected event on later ones of its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox import Destination, Event, Route
from pillarbox.core.errors import UnavailableError
from pillarbox.core.store import send_number
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.relay.routing import Ordering
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage, ids

BOTH: list[Ordering] = ["strict", "pipelined"]


class Noted(MemoryTransport):
    """A transport that records its batches."""

    batches: list[list[str]]

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.batches.append(ids(batch))
        return await super().send(batch)


def noted(stage: Stage) -> Noted:
    transport = Noted(clock=stage.simulation.clock, latency=0.01)
    transport.batches = []
    stage.transport = transport
    return transport


def to(ordering: Ordering) -> dict[str, Any]:
    return {"destinations": {"d": Destination(MemoryTransport.to("d"), ordering=ordering)}, "routes": [Route(to=["d"])]}


@pytest.mark.parametrize("ordering", BOTH)
def test_an_event_that_is_unavailable_alone_is_overtaken_by_its_own_batch_only(ordering: Ordering) -> None:
    """Responds like RabbitMQ if the queue of one event cannot be declared and the others can."""

    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        transport = noted(stage)
        transport.fail_when(lambda one: one.message.event_id.startswith("bad"), UnavailableError("no such queue"))
        async with stage.running(**to(ordering)):
            stage.record(*(Event("a", {}, event_id=name, key="k") for name in ("first", "bad1", "bad2")))
            for number in range(100):
                stage.record(Event("a", {}, event_id=f"{number}", key="k"), Event("a", {}, key=f"other {number}"))
                await stage.rest(0.02)
            await stage.rest(2)
        arrived = {one.message.event_id for one in transport.deliveries if one.message.key == "k"}
        first = next(batch for batch in transport.batches if "bad1" in batch)
        assert arrived - {"first"} <= set(first)
        assert sum("bad1" in batch for batch in transport.batches) < 20

    simulate(scenario, seed=1)


@pytest.mark.parametrize("ordering", BOTH)
def test_at_most_once_an_event_that_blocks_holds_back_all_but_its_own_batch(ordering: Ordering) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=True)
        transport = noted(stage)
        stage.record(*(Event("a", {}, event_id=f"{number}", key="k") for number in range(5)))
        [second] = [row.message for row in stage.store._tables.waiting.values() if row.message.event_id == "1"]
        # As after a crash of a relay during the send of event 1.
        stage.store._tables.write_ledger(("1", "d"), "PROCESSING", send_number=send_number(second))
        async with stage.running(tuned={"at_most_once": True, "on_exhausted": "block"}, **to(ordering)):
            await stage.rest(3)
            stage.record(Event("a", {}, event_id="5", key="k"))
            await stage.rest(3)
            assert ids(transport.deliveries) == (["0"] if ordering == "strict" else ["0", "2", "3", "4"])
            await stage.store.admin.requests.add("discard", [("1", "d")])
            await stage.until(lambda: not stage.store._tables.waiting)
        assert ids(transport.deliveries) == ["0", "2", "3", "4", "5"]

    simulate(scenario, seed=1)
