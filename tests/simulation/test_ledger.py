"""A relay with a ledger: what was sent is not sent again; what may have been sent is; nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox import Event
from pillarbox.core.errors import StoreUnavailable, Unavailable
from pillarbox.core.observations import EventSkipped, StoreFailed
from pillarbox.core.outcome import Resolved
from pillarbox.relay.routing import Route
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.memory.ledger import MemoryLedger
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage, ids


def with_ledger(simulation: Simulation) -> Stage:
    stage = Stage(simulation)
    stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=True)
    return stage


def noted(stage: Stage) -> dict[tuple[str, str], str]:
    return {identity: entry.status for identity, entry in stage.store._tables.processed.items()}


def test_an_event_recorded_twice_is_sent_once() -> None:
    async def story(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        for _ in range(2):
            stage.record(Event("a", {}, event_id="1", key="k"), Event("a", {}, event_id="2", key="k"))
            await stage.relay().run_until_empty()
        assert ids(stage.transport.deliveries) == ["1", "2"]
        assert noted(stage) == {("1", "a"): "SUCCESS", ("2", "a"): "SUCCESS"}
        assert [one.message.event_id for one in stage.seen(EventSkipped)] == ["1", "2"]
        assert not stage.store._tables.waiting

    for seed in range(5):
        simulate(story, seed=seed)


def test_an_event_for_two_destinations_reaches_both_though_one_was_cut_off() -> None:
    async def story(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        places = {name: MemoryTransport.to(name) for name in ("left", "right")}
        ways = {"destinations": places, "routes": [Route(to=list(places))]}
        stage.record(Event("a", {}, event_id="1"))
        stage.transport.fail_when(lambda one: one.address == places["right"], Unavailable("cut off"))
        await stage.relay(**ways).run_until_empty()
        assert ids(stage.transport.delivered("left")) == ["1"]
        # One destination done, the other begun: as a crash leaves it, too.
        assert noted(stage) == {("1", "left"): "SUCCESS", ("1", "right"): "PROCESSING"}
        stage.transport.succeed()
        async with stage.running(**ways):
            await stage.until(lambda: ids(stage.transport.delivered("right")) == ["1"])
        assert ids(stage.transport.delivered("left")) == ["1"]

    for seed in range(5):
        simulate(story, seed=seed)


class Unsteady(MemoryLedger):
    """Fails before or after it wrote, as a database that is torn away does."""

    failures = 0

    async def begin(self, messages: Sequence[Resolved]) -> list[bool]:
        self.failures += 1
        if self.failures == 1:
            raise StoreUnavailable("deadlock detected")
        known = await super().begin(messages)
        if self.failures == 2:
            raise StoreUnavailable("connection lost")
        return known


def test_a_ledger_that_fails_loses_nothing_and_keeps_the_order() -> None:
    async def story(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        unsteady = stage.store.ledger = Unsteady(stage.store._tables)
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(6)))
        async with stage.running():
            await stage.until(lambda: len(stage.transport.deliveries) == 6)
        assert ids(stage.transport.deliveries) == [f"{n}" for n in range(6)]
        assert unsteady.failures > 2
        assert [one.error for one in stage.seen(StoreFailed)] == ["deadlock detected", "connection lost"]

    for seed in range(5):
        simulate(story, seed=seed)
