"""A small world to lose events in: writers, relays that come, go and die, a wire that fails, and an independent judge.

The judge knows only what the writers committed and what arrived; it asks no relay and no counter.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from pillarbox import Event, Outbox
from pillarbox.core.errors import PermanentError, Rejected, SendError
from pillarbox.core.observations import EventRetried, LeaseLost, Observation
from pillarbox.core.retry import Exponential
from pillarbox.core.transport import Outgoing, Result
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Route
from pillarbox.relay.tuning import Tuning
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation
from pillarbox.transports.memory import MemoryAddress, MemoryTransport

TUNING = Tuning(
    batch_size=8,
    in_flight=2,
    poll_interval="500ms",
    lease="6s",
    heartbeat="1s",
    send_timeout="3s",
    drain_timeout="10s",
)
QUIET = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What happens in one schedule; drawn from its seed, printed when it fails."""

    relays: int
    keys: int
    events: int
    destinations: int
    kills: int
    outages: int
    joins: int
    freezes: int
    rejected: float
    poisoned: float
    delayed: float
    rolled_back: float
    latency: float

    @classmethod
    def drawn(cls, chance: Any) -> Plan:
        return cls(
            relays=chance.randint(1, 3),
            keys=chance.randint(1, 5),
            events=chance.randint(5, 40),
            destinations=chance.randint(1, 2),
            kills=chance.randint(0, 3),
            outages=chance.randint(0, 2),
            joins=chance.randint(0, 2),
            freezes=chance.randint(0, 2),
            rejected=chance.choice([0, 0.05, 0.3]),
            poisoned=chance.choice([0, 0, 0.1]),
            delayed=chance.choice([0, 0, 0.2]),
            rolled_back=chance.choice([0, 0.2]),
            latency=chance.choice([0.001, 0.05, 1.0]),
        )


class Machine:
    """What a relay runs on: it can be killed, and stopped for a while to go on as if nothing had happened."""

    def __init__(self) -> None:
        self.dead = False
        self._running = asyncio.Event()
        self._running.set()

    def freeze(self) -> None:
        self._running.clear()

    def thaw(self) -> None:
        self._running.set()

    async def step(self) -> None:
        """Every call of the relay to the outside goes through here, on its way out and on its way back."""
        await self._running.wait()
        if self.dead:
            raise asyncio.CancelledError

    async def call(self, work: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        await self.step()
        result = await work(*arguments, **options)
        await self.step()
        return result


class _Facet:
    def __init__(self, inner: Any, machine: Machine) -> None:
        self._inner = inner
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return partial(self._machine.call, value) if callable(value) else value


class MachineStore:
    """The store as a relay on that machine sees it."""

    FACETS = ("lanes", "messages", "writes", "people", "upkeep", "wakeup", "schema", "destinations")

    def __init__(self, inner: MemoryStore, machine: Machine) -> None:
        self._inner = inner
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return _Facet(value, self._machine) if name in self.FACETS else value


class MachineTransport(MemoryTransport):
    """The wire as a relay on that machine uses it."""

    machine: Machine

    async def send(self, lot: Sequence[Outgoing]) -> list[Result]:
        answers: list[Result] = await self.machine.call(super().send, lot)
        return answers


@dataclass(eq=False)
class Process:
    """A relay and the machine it runs on."""

    relay: Relay
    machine: Machine
    transport: MachineTransport
    task: asyncio.Task[None]

    async def kill(self) -> None:
        """As SIGKILL does: nothing it does from now on reaches anybody."""
        self.machine.dead = True
        self.machine.thaw()
        self.transport.outage()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def stop(self) -> None:
        self.machine.thaw()
        self.relay.stop()
        await self.task


@dataclass
class World:
    simulation: Simulation
    plan: Plan
    committed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    delayed: set[str] = field(default_factory=set)
    vanished: set[str] = field(default_factory=set)
    deliveries: list[Outgoing] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    refusals: dict[tuple[str, str], int] = field(default_factory=dict)
    deaths: int = 0
    cuts: int = 0
    freezes: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(lanes=8, clock=self.simulation.clock)
        self.outbox = Outbox()
        self.names = [f"d{number}" for number in range(self.plan.destinations)]
        self._down = False

    # -- what happens ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        for _ in range(self.plan.relays):
            self.start()
        disturbances = [self._kill_some(), self._cut_some(), self._join_some(), self._freeze_some()]
        writers = [self._write(f"key {number}") for number in range(self.plan.keys)]
        await asyncio.gather(*writers, *disturbances)
        if not self.processes:
            self.start()
        await self._until_quiet()
        for process in list(self.processes):
            await process.stop()
        await self._judge()

    def start(self) -> None:
        chance, clock = self.simulation.chance, self.simulation.clock
        machine = Machine()
        transport = MachineTransport(
            clock=clock, latency=lambda: chance.random() * self.plan.latency, deliveries=self.deliveries
        )
        transport.machine = machine
        transport.script(self._refuses)
        if self._down:
            transport.outage()
        relay = Relay(
            store=MachineStore(self.store, machine),
            transports={"memory": transport},
            destinations={name: MemoryTransport.to(name) for name in self.names},
            routes=[Route(to=self.names)],
            retry=Exponential(base="1s", max="10s", max_attempts=0),
            tuning=TUNING,
            clock=clock,
            chance=chance,
            observers=[self.observed.append],
            threaded_heartbeat=False,
        )
        self.processes.append(Process(relay, machine, transport, asyncio.create_task(relay.run())))

    def _refuses(self, one: Outgoing) -> SendError | None:
        """A message refused a few times, or for good; decided once per message and destination."""
        identity = _identity(one)
        chance = self.simulation.chance
        if identity not in self.refusals:
            times = chance.randint(1, 3) if chance.random() < self.plan.rejected else 0
            self.refusals[identity] = -1 if chance.random() < self.plan.poisoned else times
        left = self.refusals[identity]
        if left == -1:
            return PermanentError("never")
        if left > 0:
            self.refusals[identity] = left - 1
            return Rejected("not now")
        return None

    async def _write(self, key: str) -> None:
        chance, clock = self.simulation.chance, self.simulation.clock
        for number in range(self.plan.events // self.plan.keys + 1):
            await clock.sleep(chance.random() * 2)
            event_id = f"{key}/{number}"
            late = chance.random() < self.plan.delayed
            at = clock.now() + timedelta(seconds=chance.random() * 20) if late else None
            event = Event("thing.happened", {"n": number}, event_id=event_id, key=key, available_at=at)
            try:
                with self.store.transaction() as transaction:
                    self.outbox.record(transaction, event)
                    await clock.sleep(chance.random())
                    if chance.random() < self.plan.rolled_back:
                        raise LookupError
            except LookupError:
                self.vanished.add(event_id)
            else:
                self.committed[key].append(event_id)
                if late:
                    self.delayed.add(event_id)

    async def _kill_some(self) -> None:
        for _ in range(self.plan.kills):
            await self.simulation.clock.sleep(self.simulation.chance.random() * 20)
            if self.processes:
                victim = self.processes.pop(self.simulation.chance.randrange(len(self.processes)))
                self.deaths += 1
                await victim.kill()
            if self.simulation.chance.random() < 0.7:
                self.start()

    async def _cut_some(self) -> None:
        for _ in range(self.plan.outages):
            await self.simulation.clock.sleep(self.simulation.chance.random() * 15)
            self.cuts += len(self.processes)
            self._down = True
            for process in self.processes:
                process.transport.outage()
            await self.simulation.clock.sleep(self.simulation.chance.random() * 60)
            self._down = False
            for process in self.processes:
                process.transport.heal()

    async def _join_some(self) -> None:
        for _ in range(self.plan.joins):
            await self.simulation.clock.sleep(self.simulation.chance.random() * 20)
            if self.simulation.chance.random() < 0.5 or len(self.processes) < 2:
                self.start()
            else:
                leaver = self.processes.pop(0)
                await leaver.stop()

    async def _freeze_some(self) -> None:
        """As SIGSTOP and SIGCONT do; for up to three leases."""
        for _ in range(self.plan.freezes):
            await self.simulation.clock.sleep(self.simulation.chance.random() * 20)
            if self.processes:
                victim = self.simulation.chance.choice(self.processes)
                self.freezes += 1
                victim.machine.freeze()
                await self.simulation.clock.sleep(self.simulation.chance.random() * 18)
                victim.machine.thaw()

    async def _until_quiet(self) -> None:
        end = self.simulation.clock.monotonic() + QUIET
        while self.store._tables.waiting:
            assert self.simulation.clock.monotonic() < end, f"still waiting: {self.store._tables.waiting}"
            await self.simulation.clock.sleep(1)

    # -- what is judged -------------------------------------------------------------------------------------------

    async def _judge(self) -> None:
        dead = {(letter.event_id, letter.destination) for letter in await self.store.people.dead(limit=10_000)}
        wanted = {(event_id, name) for ids in self.committed.values() for event_id in ids for name in self.names}
        everything = [_identity(one) for one in self.deliveries]
        arrived = set(everything)
        assert wanted - arrived - dead == set(), f"lost: {wanted - arrived - dead}"
        assert {event_id for event_id, _ in arrived} & self.vanished == set(), "phantoms"
        assert arrived <= wanted
        for key, ids in self.committed.items():
            for name in self.names:
                self._judge_order(key, ids, name, everything)
        bound = (self.deaths + self.cuts + self.freezes) * TUNING.most_in_hand * len(self.names)
        duplicates = len(everything) - len(arrived)
        lost_leases = sum(isinstance(one, LeaseLost) for one in self.observed)
        assert duplicates <= bound + lost_leases * TUNING.most_in_hand, f"{duplicates} duplicates, {bound} allowed"
        charged = sum(isinstance(one, EventRetried) and one.charged for one in self.observed)
        assert charged == 0 or self.plan.rejected > 0, "an outage burned attempts"

    def _judge_order(self, key: str, ids: list[str], name: str, everything: list[tuple[str, str]]) -> None:
        first = list(
            dict.fromkeys(
                event_id
                for event_id, destination in everything
                if destination == name and event_id.startswith(f"{key}/") and event_id not in self.delayed
            )
        )
        expected = [event_id for event_id in ids if event_id in set(first)]
        assert first == expected, f"order of {key} at {name}: {first}"


def _identity(one: Outgoing) -> tuple[str, str]:
    assert isinstance(one.address, MemoryAddress)
    return one.message.event_id, one.address.name
