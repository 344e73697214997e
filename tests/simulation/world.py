"""A simulated system: writers, operators, relays that start, stop and crash, a transport that fails, and an independent
checker (`checker.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pillarbox import Event, Outbox
from pillarbox.core.errors import PermanentError, RejectedError, SendError
from pillarbox.core.observations import Observation
from pillarbox.core.transport import Outgoing, Pace, SendResult
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import dead_letters
from pillarbox.testing.simulation import Simulation
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.checker import check, until_delivered
from tests.simulation.hosts import Identity, Machine, MachineStore, MachineTransport, Process, identity
from tests.simulation.plan import CONFIG, EDITED, Plan

LONGEST_SEND = 4.0
"""Seconds of a send of a transport without its own timeout, at most: `send_timeout` and a second."""
LONGEST_RETRY = 10.0
LONGEST_FAULT = 18.0
"""Three leases."""


@dataclass
class World:
    simulation: Simulation
    plan: Plan
    committed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    moved: set[str] = field(default_factory=set)
    """Events without a fixed position in their key: delayed, or sent again after they were dead-lettered."""
    vanished: set[str] = field(default_factory=set)
    discarded: dict[Identity, int] = field(default_factory=dict)
    """Events that a relay discarded, with the number of deliveries until then; -1: unknown."""
    edited: set[Identity] = field(default_factory=set)
    deliveries: list[Outgoing] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    observed: list[Observation] = field(default_factory=list)
    refusals: dict[Identity, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    excused: set[tuple[Identity, Identity]] = field(default_factory=set)
    """Of each pair the second event may arrive first."""
    expired: set[str] = field(default_factory=set)
    """Relays that lost a lease before it ended: they cannot know, and may begin sends until they do."""
    calm: bool = False
    """Every fault has ended; nothing is rejected any more, except permanently."""
    faults: int = 0
    """Crashes, cuts, freezes, partitions and lost leases: each may repeat what one relay had in flight."""

    def __post_init__(self) -> None:
        self.store = MemoryStore(lanes=8, clock=self.simulation.clock, ledger=self.plan.ledger)
        self.outbox = Outbox()
        self.names = [f"d{number}" for number in range(self.plan.destinations)]
        self._down = False

    # -- what happens ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        for _ in range(self.plan.relays):
            self.start()
        await asyncio.gather(
            *(self.write(f"key {number}") for number in range(self.plan.keys)),
            *(self._straggle(f"key {number % self.plan.keys}", number) for number in range(self.plan.stragglers)),
            self._kill_some(),
            self._cut_some(),
            self._join_some(),
            self._freeze_some(),
            self._partition_some(),
            self._expire_some(),
            self._request_some(),
        )
        if not self.processes:
            self.start()
        await self.finish()

    async def finish(self) -> None:
        """End every fault, wait until all is delivered, stop the relays, and check."""
        self.calm = True
        await until_delivered(self)
        for process in list(self.processes):
            await process.stop()
        await check(self)

    def start(self) -> None:
        rng, clock = self.simulation.rng, self.simulation.clock
        machine = Machine(self.simulation, self.plan.store_latency)
        transport = MachineTransport(
            clock=clock,
            latency=lambda: rng.random() * self.plan.latency,
            deliveries=self.deliveries,
            # Pipelined, a key has more in flight than one batch.
            pace=Pace(batch_size=4 if self.plan.pipelined else 500, has_own_timeout=self.plan.slow, in_order=True),
        )
        transport.machine = machine
        if self.plan.pipelined:
            transport.loses, transport.on_arrival = self._loses, self._note_refused
        transport.script(self._refuses)
        if self._down:
            transport.outage()
        relay = Relay(
            store=MachineStore(self.store, machine),
            transports={"memory": transport},
            destinations={
                name: Destination(MemoryTransport.to(name), ordering="pipelined" if self.plan.pipelined else "strict")
                for name in self.names
            },
            routes=[Route(to=self.names)],
            retry=ExponentialBackoff(base="1s", max_delay=f"{LONGEST_RETRY}s", max_attempts="unlimited"),
            config=CONFIG,
            clock=clock,
            rng=rng,
            observers=[self.observed.append],
            threaded_heartbeat=False,
        )
        transport.on_send = lambda: self._check_lease(relay.id)
        self.processes.append(Process(relay, machine, transport, asyncio.create_task(relay.run())))

    def _check_lease(self, relay: str) -> None:
        """Check that a send begins only if enough of the lease is left for it to end."""
        row = self.store._tables.relays.get(relay)
        if row is not None and relay not in self.expired:
            left = row.lease_end - self.simulation.clock.monotonic()
            if left < LONGEST_SEND - 1e-6:
                self.violations.append(f"lease: a send began with {left:.2f} s of lease left")

    def _note_refused(self, batch: Sequence[Outgoing], answers: Sequence[SendResult]) -> None:
        """Pipelined, a rejected event arrives after those sent after it in its batch."""
        for position, answer in enumerate(answers):
            if isinstance(answer, RejectedError | PermanentError):
                self.excused.update((identity(batch[position]), identity(later)) for later in batch[position + 1 :])

    def _loses(self, size: int) -> tuple[int, int] | None:
        """Lose the connection in every tenth send: some messages arrived, some of those are confirmed."""
        rng = self.simulation.rng
        if self.calm or rng.random() > 0.1:
            return None
        self.faults += 1
        arrive = rng.randint(0, size)
        return arrive, rng.randint(0, arrive)

    def _refuses(self, one: Outgoing) -> SendError | None:
        """Reject a message a few times, or permanently; decided once per message and destination."""
        which = identity(one)
        rng = self.simulation.rng
        if which not in self.refusals:
            times = rng.randint(1, 3) if rng.random() < self.plan.rejected else 0
            self.refusals[which] = -1 if rng.random() < self.plan.poisoned else times
        left = self.refusals[which]
        if left == -1 and one.body != EDITED:
            return PermanentError("never")
        if left > 0 and not self.calm:
            self.refusals[which] = left - 1
            return RejectedError("not now")
        return None

    async def write(self, key: str) -> None:
        """Record events of one key: several in one transaction, some delayed, some rolled back."""
        rng, clock = self.simulation.rng, self.simulation.clock
        total = self.plan.events // self.plan.keys + 1
        number = 0
        while number < total:
            await clock.sleep(rng.random() * 2)
            events: list[Event] = []
            for _ in range(min(rng.randint(1, self.plan.burst), total - number)):
                late = rng.random() < self.plan.delayed
                at = clock.now() + timedelta(seconds=rng.random() * 20) if late else None
                event_id = f"{key}/{number}"
                events.append(Event("thing.happened", {"n": number}, event_id=event_id, key=key, available_at=at))
                number += 1
            ids = [event.event_id for event in events]
            try:
                with self.store.transaction() as transaction:
                    self.outbox.record(transaction, *events)
                    await clock.sleep(rng.random())
                    if rng.random() < self.plan.rolled_back:
                        raise LookupError
            except LookupError:
                self.vanished.update(ids)
            else:
                self.committed[key] += ids
                self.moved.update(event.event_id for event in events if event.available_at is not None)

    async def _straggle(self, key: str, number: int) -> None:
        await self._pause(30)
        event_id = f"{key}/late {number}"
        with self.store.transaction() as transaction:
            self.outbox.record(transaction, Event("thing.happened", {}, event_id=event_id, key=key))
            await self._pause(10)
        self.committed[key].append(event_id)
        self.moved.add(event_id)

    async def _pause(self, longest: float) -> None:
        await self.simulation.clock.sleep(self.simulation.rng.random() * longest)

    async def _kill_some(self) -> None:
        for _ in range(self.plan.kills):
            await self._pause(20)
            if self.processes:
                victim = self.processes.pop(self.simulation.rng.randrange(len(self.processes)))
                self.faults += 1
                await victim.kill()
            if self.simulation.rng.random() < 0.7:
                self.start()

    async def _cut_some(self) -> None:
        for _ in range(self.plan.outages):
            await self._pause(15)
            self.faults += len(self.processes)
            self._down = True
            for process in self.processes:
                process.transport.outage()
            await self._pause(60)
            self._down = False
            for process in self.processes:
                process.transport.heal()

    async def _join_some(self) -> None:
        for _ in range(self.plan.joins):
            await self._pause(20)
            if self.simulation.rng.random() < 0.5 or len(self.processes) < 2:
                self.start()
            else:
                leaver = self.processes.pop(0)
                await leaver.stop()

    async def _freeze_some(self) -> None:
        """Freeze and continue, as SIGSTOP and SIGCONT do."""
        for _ in range(self.plan.freezes):
            await self._pause(20)
            if self.processes:
                victim = self.simulation.rng.choice(self.processes)
                self.faults += 1
                victim.machine.freeze()
                await self._pause(LONGEST_FAULT)
                victim.machine.thaw()

    async def _partition_some(self) -> None:
        """Cut the network between one relay and the store; what the relay sends still arrives."""
        for _ in range(self.plan.partitions):
            await self._pause(20)
            if self.processes:
                victim = self.simulation.rng.choice(self.processes)
                self.faults += 1
                victim.machine.cut_off = True
                await self._pause(LONGEST_FAULT)
                victim.machine.cut_off = False

    async def _expire_some(self) -> None:
        """Let the store expire a live relay: the relay learns it at its next heartbeat."""
        for _ in range(self.plan.expiries):
            await self._pause(8)
            if self.processes:
                self.faults += 1
                relay = self.simulation.rng.choice(self.processes).relay.id
                self.expired.add(relay)
                self.store._tables.relays.pop(relay, None)

    async def _request_some(self) -> None:
        for _ in range(self.plan.requests):
            await self._pause(8)
            pending = list(self.store._tables.waiting)
            if not pending:
                continue
            which = self.simulation.rng.choice(pending)
            match self.simulation.rng.choice(["retry", "reschedule", "discard", "edit", "edit"]):
                case "retry":
                    await self.store.admin.requests.add("retry", [which])
                case "reschedule":
                    await self.store.admin.requests.add("reschedule", [which], delay=self.simulation.rng.random() * 5)
                case "discard":
                    await self._discard(which)
                case _:
                    await self._edit(which)

    async def _discard(self, which: Identity) -> None:
        self.discarded[which] = -1
        [request] = await self.store.admin.requests.add("discard", [which])
        if await self._closed(request) and request in self.store._tables.carried_out:
            self.discarded[which] = len(self.deliveries)

    async def _edit(self, which: Identity) -> None:
        """Dead-letter a pending event, then edit and retry it, all while it may be in flight."""
        self.moved.add(which[0])
        [request] = await self.store.admin.requests.add("dead_letter", [which])
        if await self._closed(request):
            edit = self.store.admin.dead_letters.edit
            for dead_letter in await dead_letters(self.store, limit=1000):
                is_it = (dead_letter.event_id, dead_letter.destination) == which
                if is_it and await edit(dead_letter.id, payload=EDITED):
                    self.edited.add(which)

    async def _closed(self, request: int) -> bool:
        """Wait until a relay has executed a request, for a while."""
        for _ in range(400):
            if request not in self.store._tables.requests:
                return True
            await self.simulation.clock.sleep(0.1)
        return False
