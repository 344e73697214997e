"""A relay with a ledger: what was sent is not sent again; what may have been sent is, unless at_most_once is set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox import ConfigurationError, Event, Relay, RelayConfig
from pillarbox.core.errors import NackedError, RejectedError, SendError, StoreUnavailableError, UnavailableError
from pillarbox.core.observations import EventDeadLettered, EventSkipped, StoreFailed
from pillarbox.core.outcome import Dead, Resolved
from pillarbox.core.store import LedgerKind, PriorSend
from pillarbox.relay.routing import Route
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.memory.ledger import MemoryLedger
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.hosts import Machine, MachineStore, MachineTransport, Process
from tests.simulation.stage import Stage, ids


def with_ledger(simulation: Simulation, ledger: LedgerKind = True) -> Stage:
    stage = Stage(simulation)
    stage.store = MemoryStore(lanes=8, clock=simulation.clock, ledger=ledger)
    return stage


def noted(stage: Stage) -> dict[tuple[str, str], str]:
    return {identity: entry.status for identity, entry in stage.store._tables.processed.items()}


def test_an_event_recorded_twice_is_sent_once() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        for _ in range(2):
            stage.record(Event("a", {}, event_id="1", key="k"), Event("a", {}, event_id="2", key="k"))
            await stage.relay().run_until_empty()
        assert ids(stage.transport.deliveries) == ["1", "2"]
        assert noted(stage) == {("1", "a"): "SUCCESS", ("2", "a"): "SUCCESS"}
        assert [one.message.event_id for one in stage.seen(EventSkipped)] == ["1", "2"]
        assert not stage.store._tables.waiting

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_an_event_for_two_destinations_reaches_both_although_one_was_disconnected() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        places = {name: MemoryTransport.to(name) for name in ("left", "right")}
        ways = {"destinations": places, "routes": [Route(to=list(places))]}
        stage.record(Event("a", {}, event_id="1"))
        stage.transport.fail_when(lambda one: one.address == places["right"], UnavailableError("cut off"))
        await stage.relay(**ways).run_until_empty()
        assert ids(stage.transport.delivered("left")) == ["1"]
        # One destination delivered, the other begun, as after a crash.
        assert noted(stage) == {("1", "left"): "SUCCESS", ("1", "right"): "PROCESSING"}
        stage.transport.succeed()
        async with stage.running(**ways):
            await stage.until(lambda: ids(stage.transport.delivered("right")) == ["1"])
        assert ids(stage.transport.delivered("left")) == ["1"]

    for seed in range(5):
        simulate(scenario, seed=seed)


class Unsteady(MemoryLedger):
    """Fails before or after it wrote, like a database whose connection is lost."""

    failures = 0

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:  # type: ignore[override] # to mypy an `async def` has another type
        self.failures += 1
        if self.failures == 1:
            raise StoreUnavailableError("deadlock detected")
        known = await super().begin(messages)
        if self.failures == 2:
            raise StoreUnavailableError("connection lost")
        return known


def test_a_ledger_that_fails_loses_nothing_and_keeps_the_order() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        unsteady = stage.store.ledger = Unsteady(stage.store._tables)
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(6)))
        async with stage.running():
            await stage.until(lambda: len(stage.transport.deliveries) == 6)
        assert ids(stage.transport.deliveries) == [f"{n}" for n in range(6)]
        assert unsteady.failures > 2
        assert [one.error for one in stage.seen(StoreFailed)] == ["deadlock detected", "connection lost"]

    for seed in range(5):
        simulate(scenario, seed=seed)


class Overtaken(MemoryLedger):
    """Delays its first result until the test continues."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.store._tables)
        self.asked = 0
        self.answer = asyncio.Event()

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:  # type: ignore[override] # to mypy an `async def` has another type
        self.asked += 1
        first = self.asked == 1
        known = await super().begin(messages)
        if first:
            await self.answer.wait()
        return known


def test_a_lane_lost_and_reacquired_during_a_ledger_write_sends_nothing_twice() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        slow = stage.store.ledger = Overtaken(stage)
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(3)))
        async with stage.running() as relay:
            await stage.until(lambda: slow.asked == 1)
            # Like a relay that another one has expired: it joins again and acquires its lanes again.
            await stage.store.lanes.release(relay.id)
            await stage.until(lambda: len(stage.transport.deliveries) == 3)
            slow.answer.set()
            await stage.rest(5)
        assert ids(stage.transport.deliveries) == ["0", "1", "2"]

    for seed in range(5):
        simulate(scenario, seed=seed)


# -- the history as a ledger ------------------------------------------------------------------------------------------


def test_an_event_that_the_history_knows_is_not_sent_again_unless_an_operator_wants_it() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation, "history")
        for _ in range(2):
            stage.record(Event("a", {}, event_id="1", key="k"), Event("a", {}, event_id="2", key="k"))
            await stage.relay().run_until_empty()
        assert ids(stage.transport.deliveries) == ["1", "2"]
        assert [one.message.event_id for one in stage.seen(EventSkipped)] == ["1", "2"]
        stage.record(Event("a", {}, event_id="1"))
        owner = await Owner.of(stage.store)
        await owner.settle(Dead(error="no"), *await owner.ready(), to="a")
        [dead_letter] = await dead_letters(stage.store)
        await stage.store.admin.dead_letters.retry([dead_letter.id])
        await owner.expire()
        await stage.relay().run_until_empty()
        assert ids(stage.transport.deliveries) == ["1", "2", "1"]

    simulate(scenario, seed=1)


# -- at most once -----------------------------------------------------------------------------------------------------

AT_MOST_ONCE = {"tuned": {"at_most_once": True}}


@pytest.mark.parametrize("on_exhausted", ["skip", "block"])
def test_a_send_begun_by_a_crashed_relay_is_shown_to_an_operator_instead_of_repeated(on_exhausted: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        ways = {"tuned": {"at_most_once": True, "on_exhausted": on_exhausted}}
        stage.record(Event("a", {}, event_id="1", key="k"), Event("a", {}, event_id="2", key="k"))
        owner, ledger = await Owner.of(stage.store), stage.store.ledger
        assert ledger is not None
        await ledger.begin([Resolved((await owner.ready())[0], "a")])
        await owner.expire()
        await stage.relay(**ways).run_until_empty()
        assert ids(stage.transport.deliveries) == (["2"] if on_exhausted == "skip" else [])
        [announced] = stage.seen(EventDeadLettered)
        assert (announced.message.event_id, "may have arrived" in announced.error) == ("1", True)
        if on_exhausted == "skip":
            [dead_letter] = await dead_letters(stage.store)
            await stage.store.admin.dead_letters.retry([dead_letter.id])
        else:
            await stage.store.admin.requests.add("retry", [("1", "a")])
        async with stage.running(**ways):
            await stage.until(lambda: ids(stage.transport.deliveries)[-2:] in (["2", "1"], ["1", "2"]))

    simulate(scenario, seed=1)


@pytest.mark.parametrize("error", [RejectedError("no"), NackedError("full"), UnavailableError("cut off")], ids=repr)
def test_a_message_whose_result_is_an_error_is_sent_again(error: SendError) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(4)))
        stage.transport.fail_when(lambda one: True, error)
        async with stage.running(**AT_MOST_ONCE):
            await stage.rest(5)
            stage.transport.succeed()
            await stage.until(lambda: len(stage.transport.deliveries) == 4, within=300)
        assert ids(stage.transport.deliveries) == ["0", "1", "2", "3"]
        assert await dead_letters(stage.store) == []

    simulate(scenario, seed=1)


def test_a_message_counted_but_not_sent_because_the_ledger_failed_is_sent() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = with_ledger(simulation)
        stage.store.ledger = Unsteady(stage.store._tables)
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(6)))
        async with stage.running(**AT_MOST_ONCE):
            await stage.until(lambda: len(stage.transport.deliveries) == 6)
        assert ids(stage.transport.deliveries) == [f"{n}" for n in range(6)]

    simulate(scenario, seed=1)


def test_nothing_is_sent_twice_and_nothing_is_lost_whatever_is_killed() -> None:
    unknown = 0

    async def scenario(simulation: Simulation) -> None:
        nonlocal unknown
        stage, rng = with_ledger(simulation), simulation.rng
        events = [f"{n}" for n in range(60)]
        stage.record(*(Event("a", {}, event_id=name, key=f"k{rng.randrange(5)}") for name in events))
        for _ in range(4):
            machine = Machine(stage.simulation)
            transport = MachineTransport(
                clock=simulation.clock, latency=lambda: rng.random(), deliveries=stage.transport.deliveries
            )
            transport.machine = machine
            relay = stage.relay(
                store=MachineStore(stage.store, machine), transports={"memory": transport}, **AT_MOST_ONCE
            )
            process = Process(relay, machine, transport, asyncio.create_task(relay.run()))
            await stage.rest(rng.random() * 15)
            await process.kill()
        async with stage.running(**AT_MOST_ONCE):
            await stage.until(lambda: not stage.store._tables.waiting, within=600)
        sent = ids(stage.transport.deliveries)
        dead = {dead_letter.event_id for dead_letter in await dead_letters(stage.store, limit=100)}
        assert len(set(sent)) == len(sent)
        assert set(sent) | dead == set(events)
        unknown += len(dead)

    for seed in range(15):
        simulate(scenario, seed=seed)
    assert unknown > 0


def test_at_most_once_needs_a_ledger() -> None:
    for ledger in (False, "history"):
        store = MemoryStore(ledger=ledger)
        with pytest.raises(ConfigurationError, match="ledger=True"):
            Relay(store=store, transports={"memory": MemoryTransport()}, config=RelayConfig(at_most_once=True))
