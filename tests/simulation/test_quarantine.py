"""In quarantine a relay writes each attempt before its send: a message that crashes its relays is dead-lettered, and no
other message that was in flight while a relay lost its lanes, its database or its destination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.errors import RejectedError, RowsRefusedError, StoreUnavailableError, UnavailableError
from pillarbox.core.message import Held
from pillarbox.core.observations import LeaseLost
from pillarbox.core.transport import Outgoing, Pace, SendResult
from pillarbox.relay.guards import BEING_SENT, CALM, CRASHES_TO_QUARANTINE, MAX_RELAY_CRASHES
from pillarbox.relay.routing import Route
from pillarbox.retry_policies import FixedDelay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.hosts import Machine, MachineStore, MachineTransport, Process
from tests.simulation.stage import Stage, ids

GRACE = 10.0
"""The lease of the stage."""
AGAIN_AND_AGAIN = MAX_RELAY_CRASHES + 2


def quarantined(simulation: Simulation, *, ledger: bool = False) -> Stage:
    """Take every lane from owners that did not leave, several times."""
    stage = Stage(simulation)
    stage.store = MemoryStore(lanes=1, clock=simulation.clock, ledger=ledger)
    for lane in stage.store._tables.lanes:
        lane.crashes = CRASHES_TO_QUARANTINE
    return stage


def attempts(stage: Stage) -> int:
    [stored] = stage.store._tables.waiting.values()
    return stored.message.attempts


async def delivered_once_all_is_well(stage: Stage) -> None:
    await stage.until(lambda: set(ids(stage.transport.deliveries)) == {"other"}, within=5 * GRACE)
    await stage.until(lambda: not stage.store._tables.waiting)
    assert await dead_letters(stage.store) == []


def test_a_relay_that_repeatedly_loses_its_lanes_during_a_send_dead_letters_no_message() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        stage.record(Event("a", {}, event_id="other"))
        stage.transport.latch.close()
        async with stage.running() as relay:
            for time in range(1, AGAIN_AND_AGAIN + 1):
                await stage.until(lambda: stage.transport.latch.held > 0)
                assert attempts(stage) == 1
                stage.store._tables.relays.pop(relay.id)
                await stage.until(lambda time=time: len(stage.seen(LeaseLost)) == time)  # type: ignore[misc]
                await stage.until(lambda: stage.transport.latch.held == 0)
            stage.transport.latch.open()
            await delivered_once_all_is_well(stage)

    simulate(scenario, seed=1)


def test_an_outage_of_the_destination_dead_letters_no_message() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        stage.record(Event("a", {}, event_id="other"))
        stage.transport.fail_when(lambda _: True, UnavailableError("cut off"))
        async with stage.running():
            await stage.rest(60)
            stage.transport.succeed()
            await delivered_once_all_is_well(stage)

    simulate(scenario, seed=1)


@pytest.mark.parametrize("written", [False, True], ids=["before it wrote", "after it wrote"])
@pytest.mark.parametrize("what", ["ledger", "attempt"])
def test_repeated_database_failures_dead_letter_no_message(what: str, written: bool) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation, ledger=True)
        of, verb = (stage.store.ledger, "begin") if what == "ledger" else (stage.store.writes, "count_attempt")
        works, failures = getattr(of, verb), 0

        async def fails(*arguments: Any, **options: Any) -> Any:
            nonlocal failures
            failures += 1
            if failures > AGAIN_AND_AGAIN:
                return await works(*arguments, **options)
            if written:
                await works(*arguments, **options)
            raise StoreUnavailableError("connection lost")

        setattr(of, verb, fails)
        stage.record(Event("a", {}, event_id="other"))
        async with stage.running():
            await delivered_once_all_is_well(stage)
        assert failures > AGAIN_AND_AGAIN

    simulate(scenario, seed=1)


class Host(MachineTransport):
    """The transport of a machine: it records when a message reaches it."""

    slow = False
    """Whether sends that begin now never end."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(
            clock=stage.simulation.clock, deliveries=stage.transport.deliveries, pace=Pace(has_own_timeout=True)
        )
        self.machine = Machine(stage.simulation)
        self.sending: set[str] = set()

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.sending.update(one.message.event_id for one in batch)
        if self.slow:
            await asyncio.Event().wait()
        return await super().send(batch)

    def run(self, stage: Stage) -> Process:
        store = MachineStore(stage.store, self.machine)
        relay = stage.relay(store=store, transports={"memory": self}, tuned={"drain_timeout": "1s"})
        return Process(relay, self.machine, self, asyncio.create_task(relay.run()))


def test_relays_that_disconnect_in_turn_and_return_dead_letter_no_message() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        stage.record(Event("a", {}, event_id="other"))
        hosts, processes = [Host(stage) for _ in range(MAX_RELAY_CRASHES)], []
        for number, host in enumerate(hosts, start=1):
            host.slow = True
            processes.append(host.run(stage))
            await stage.until(lambda host=host: bool(host.sending))  # type: ignore[misc]
            assert attempts(stage) == number
            host.machine.cut_off = True
        last = Host(stage)
        processes.append(last.run(stage))
        await stage.until(lambda: any(lane.owner == processes[-1].relay.id for lane in stage.store._tables.lanes))
        await stage.rest(GRACE / 2)
        assert last.sending == set(), "it is not sent while others may say that they live"
        for host in hosts:
            host.slow = host.machine.cut_off = False
        await delivered_once_all_is_well(stage)
        for process in processes:
            await process.stop()

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_a_relay_that_stops_during_a_send_counts_for_nothing() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        stage.record(Event("a", {}, event_id="other"))
        for _ in range(AGAIN_AND_AGAIN):
            host = Host(stage)
            host.slow = True
            process = host.run(stage)
            await stage.until(lambda host=host: bool(host.sending))  # type: ignore[misc]
            for lane in stage.store._tables.lanes:
                lane.crashes = CRASHES_TO_QUARANTINE
            await process.stop()
        async with stage.running():
            await delivered_once_all_is_well(stage)

    simulate(scenario, seed=1)


def test_a_message_that_crashes_its_relays_is_the_only_dead_letter() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.store = MemoryStore(lanes=1, clock=simulation.clock)
        stage.record(Event("a", {}, event_id="killer", key="k"))
        stage.record(*(Event("a", {}, event_id=str(number), key=f"{number % 7}") for number in range(50)))
        for _ in range(CRASHES_TO_QUARANTINE + MAX_RELAY_CRASHES):
            host = Host(stage)
            host.slow = True  # A settlement of another message would be progress and reset the count of crashes.
            process = host.run(stage)
            await stage.until(lambda host=host: "killer" in host.sending)  # type: ignore[misc]
            await process.kill()
        async with stage.running():
            await stage.until(lambda: not stage.store._tables.waiting, within=5 * GRACE)
        [dead_letter] = await dead_letters(stage.store)
        assert (dead_letter.event_id, f"{MAX_RELAY_CRASHES} relays crashed" in dead_letter.error) == ("killer", True)
        assert set(ids(stage.transport.deliveries)) == {str(number) for number in range(50)}

    for seed in range(5):
        simulate(scenario, seed=seed)


@pytest.mark.parametrize("what", ["attempt", "copies", "waiting"])
def test_a_row_that_the_database_rejects_is_retried_after_a_pause(what: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation) if what == "attempt" else Stage(simulation)
        names = ["left", "right"] if what == "copies" else ["left"]
        ways = {"destinations": {name: MemoryTransport.to(name) for name in names}, "routes": [Route(to=names)]}
        verb = {"attempt": "count_attempt", "copies": "split", "waiting": "hold"}[what]
        works, refusals, refuses = getattr(stage.store.writes, verb), 0, True

        async def refusing(epochs: Any, given: Any, *more: Any, **options: Any) -> Any:
            nonlocal refusals
            if not refuses or (what == "attempt" and options.get("error") != BEING_SENT) or more[:1] == (Held.PARKED,):
                return await works(epochs, given, *more, **options)
            refusals += 1
            raise RowsRefusedError("a trigger says no", positions=[one.message.position for one in given])

        setattr(stage.store.writes, verb, refusing)
        if what == "waiting":
            stage.transport.fail_when(lambda one: one.message.event_id == "1", RejectedError("not now"))
        async with stage.running(retry=FixedDelay(delay="60s", max_attempts="unlimited"), **ways):
            stage.record(Event("a", {}, event_id="1", key="k"))
            await stage.rest(1)
            stage.record(Event("a", {}, event_id="2", key="k"))
            await stage.rest(30)
            assert 0 < refusals < 31 / 0.1 * 3, "it fetches twice before it sleeps for a poll interval"
            refuses = False
            stage.transport.succeed()
            await stage.until(lambda: len(stage.transport.deliveries) == 2 * len(names), within=120)
        assert ids(stage.transport.delivered("left")) == ["1", "2"]

    simulate(scenario, seed=1, max_steps=200_000)


def test_events_recorded_after_a_takeover_are_sent_together() -> None:
    """While the only event of before hangs in quarantine, the lane goes on."""

    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        stage.record(Event("a", {}, event_id="before", key="before"))
        stage.transport.latch.close()
        async with stage.running():
            await stage.until(lambda: stage.transport.latch.held > 0)
            assert attempts(stage) == 1
            stage.record(*(Event("a", {}, event_id=f"after {n}", key=f"{n}") for n in range(50)))
            await stage.until(lambda: not stage.store._tables.waiting or stage.transport.latch.held > 1)
            counted = {
                stored.message.event_id: stored.message.attempts for stored in stage.store._tables.waiting.values()
            }
            assert counted == {"before": 1} | {f"after {n}": 0 for n in range(50)}
            stage.transport.latch.open()
            await stage.until(lambda: not stage.store._tables.waiting)

    simulate(scenario, seed=1)


def test_crashes_of_owners_of_an_idle_lane_are_forgotten() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        [lane] = stage.store._tables.lanes
        async with stage.running():
            await stage.until(lambda: lane.owner is not None)
            assert lane.crashes == CRASHES_TO_QUARANTINE
            await stage.until(lambda: lane.crashes == 0)

    simulate(scenario, seed=1)


def test_crashes_count_while_a_quarantined_event_is_being_sent() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = quarantined(simulation)
        [lane] = stage.store._tables.lanes
        stage.record(Event("a", {}, event_id="other"))
        stage.transport.latch.close()
        async with stage.running(tuned={"send_timeout": "60s", "lease": "70s"}):
            await stage.until(lambda: stage.transport.latch.held > 0)
            await stage.rest(3 * CALM)
            assert lane.crashes == CRASHES_TO_QUARANTINE
            stage.transport.latch.open()
            await stage.until(lambda: lane.crashes == 0)

    simulate(scenario, seed=1)
