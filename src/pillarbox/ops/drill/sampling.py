"""What the display shows while a drill runs, from the ledgers and the overview of the store."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.ops.drill.faults import Nemesis
from pillarbox.ops.drill.fleet import Fleet
from pillarbox.ops.drill.ledger import ARRIVALS, CommittedCount, LineCount
from pillarbox.ops.drill.schedule import ExecutedFault, FaultKind

Phase = Literal["starting", "writing", "draining", "comparing"]

INTERVAL = 0.5
"""Seconds between two snapshots."""
COUNT_INTERVAL = 10.0
"""Seconds between two counts of the effects."""
MOST_UNHANDLED = 5_000
"""The writers pause while consumers have to handle more events than this: they would not finish in time."""
ACTIVITY_LINES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayState:
    """A relay process, as the display shows it."""

    name: str
    frozen: bool
    in_flight: int
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillSnapshot:
    """The state of a drill at one moment."""

    phase: Phase
    elapsed: float
    seconds: float
    """Planned seconds of load."""
    committed: int
    received: int
    pending: int | None
    """None: the store cannot be reached."""
    relays: tuple[RelayState, ...]
    executed: Counter[FaultKind]
    effective: Counter[FaultKind]
    activity: tuple[tuple[float, str], ...]
    """Seconds since the start, and what was done."""
    processes: Mapping[str, int]
    """Name → process id, of all processes."""


ShowDrill = Callable[[DrillSnapshot], None]


@dataclass(slots=True, kw_only=True)
class DrillSampler:
    """Takes snapshots of a running drill, and throttles its writers if relays or consumers do not keep up."""

    fleet: Fleet
    nemesis: Nemesis
    seconds: float
    most_pending: int
    """The writers pause while more events than that are pending."""
    show: ShowDrill
    phase: Phase = "starting"
    faults: list[ExecutedFault] = field(default_factory=list[ExecutedFault])
    _activity: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=ACTIVITY_LINES))
    _began: float = field(default_factory=time.monotonic)
    _counted: float = 0.0
    """When the effects were counted."""
    _unhandled: int = 0
    """Committed events that had no effect when the effects were counted."""

    async def run(self) -> None:
        """Show snapshots until cancelled."""
        committed = CommittedCount(self.fleet.folder)
        received = LineCount(self.fleet.folder / ARRIVALS)
        while True:
            committed.update()
            pending, owned = await self._read_store()
            await self._count_unhandled(committed)
            self.fleet.throttle_writers(
                pending is not None and (pending > self.most_pending or self._unhandled > MOST_UNHANDLED)
            )
            self.show(self._snapshot(committed.events, received.update(), pending, owned))
            await asyncio.sleep(INTERVAL)

    def add_activity(self, text: str) -> None:
        """Show an action, with the time."""
        self._activity.append((time.monotonic() - self._began, text))

    def add_fault(self, done: ExecutedFault) -> None:
        """Count and show a fault."""
        self.faults.append(done)
        effect = f"{done.in_flight} in flight" if done.in_flight else ""
        parts = [done.kind, done.victim, done.point, effect, "" if done.took_effect else "no effect"]
        self.add_activity(", ".join(part for part in parts if part))

    async def _count_unhandled(self, committed: CommittedCount) -> None:
        """Compare the effects with what is committed, now and then: a count takes longer as they become more."""
        if self.nemesis.queue is None or time.monotonic() - self._counted < COUNT_INTERVAL:
            return
        # Both at one time: what is committed until the next count says nothing about the consumers.
        committed.update()
        before = committed.events
        with suppress(StoreUnavailableError):
            [(effects,)] = await self.nemesis.tables.read("count_effect_rows")
            self._unhandled, self._counted = before - int(effects), time.monotonic()

    async def _read_store(self) -> tuple[int | None, Counter[str]]:
        try:
            overview = await self.nemesis.store.admin.inspection.overview()
        except StoreUnavailableError:
            return None, Counter()
        names = {relay.id: relay.name for relay in overview.relays}
        return overview.backlog, Counter(names.get(lane.owner or "", "") for lane in overview.lanes)

    def _snapshot(self, committed: int, received: int, pending: int | None, owned: Counter[str]) -> DrillSnapshot:
        relays = [
            RelayState(
                name=member.name,
                frozen=member.process.frozen,
                in_flight=member.control.in_flight,
                lanes=owned[member.name],
            )
            for member in self.fleet.relays
        ]
        return DrillSnapshot(
            phase=self.phase,
            elapsed=time.monotonic() - self._began,
            seconds=self.seconds,
            committed=committed,
            received=received,
            pending=pending,
            relays=tuple(relays),
            executed=Counter(fault.kind for fault in self.faults),
            effective=Counter(fault.kind for fault in self.faults if fault.took_effect),
            activity=tuple(self._activity),
            processes={member.name: member.process.pid for member in self.fleet.members},
        )
