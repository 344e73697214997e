"""Collects what the live view shows, from the overview of the store and from the ledger."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import Literal

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.ops.demo.environment import DemoEnvironment
from pillarbox.ops.demo.ledger import LedgerReader, Status
from pillarbox.ops.demo.order_service import OrderService

Phase = Literal["writing", "draining"]

RATE_WINDOW = 1.0
"""Seconds over which a rate is measured."""
HISTORY_INTERVAL = 0.75
"""Seconds between two points of a sparkline."""
HISTORY_LENGTH = 14
"""Points of a sparkline: it covers the last ten seconds."""
ACTIVITY_LINES = 4
SERVICE = "order service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """A count, its rate per second, and the last values of that rate."""

    total: int
    rate: float
    history: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverStatistics:
    """What a receiver has written to the ledger so far; duplicates are counted."""

    receiver: str
    handled: Throughput
    failed: int
    rejected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a demo at one moment."""

    phase: Phase
    elapsed: float
    progress: float | None
    """Completed part of the run, 0 to 1; None without a planned end."""
    committed: Throughput
    rolled_back: int
    receivers: tuple[ReceiverStatistics, ...]
    overview: Overview
    kills: int
    activity: tuple[tuple[float, str], ...]
    """The last actions: seconds since the start, and what was done."""
    console: str
    """Address of the web console, or how to install it; empty: not served."""


class RateMeter:
    """Computes the rate of a growing count."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()
        self._rates: deque[float] = deque(maxlen=HISTORY_LENGTH)
        self._next_history = 0.0

    def read(self, now: float, total: int) -> Throughput:
        self._samples.append((now, total))
        while len(self._samples) > 2 and self._samples[1][0] <= now - RATE_WINDOW:
            self._samples.popleft()
        (then, before), *_ = self._samples
        rate = (total - before) / (now - then) if now > then else 0.0
        if now >= self._next_history:
            self._next_history = now + HISTORY_INTERVAL
            self._rates.append(rate)
        return Throughput(total=total, rate=rate, history=tuple(self._rates))


class Sampler:
    """Takes snapshots of a running demo."""

    def __init__(self, environment: DemoEnvironment, store: AdminStore, service: OrderService, *, console: str) -> None:
        self._store = store
        self._service = service
        self._console = console
        self._receivers = environment.receivers
        self._reader = LedgerReader(environment.ledger)
        self._entries: Counter[tuple[str, Status]] = Counter()
        self._meters = {name: RateMeter() for name in (SERVICE, *environment.receivers)}
        self._activity: deque[tuple[float, str]] = deque(maxlen=ACTIVITY_LINES)
        self._epoch = 0
        self._started_at = time.monotonic()
        self.phase: Phase = "writing"
        self.kills = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started_at

    @property
    def entries(self) -> int:
        """Number of ledger entries at the last snapshot."""
        return self._entries.total()

    def add_activity(self, text: str) -> None:
        """Show an action in the live view, with the time."""
        self._activity.append((self.elapsed, text))

    async def sample(self, progress: float | None) -> Snapshot:
        """Return the current state; progress: completed part of the run."""
        overview = await self._store.admin.inspection.overview()
        self._entries.update((entry.receiver, entry.status) for entry in self._reader.read_new())
        self._report_takeovers(overview)
        now = self.elapsed
        return Snapshot(
            phase=self.phase,
            elapsed=now,
            progress=progress,
            committed=self._meters[SERVICE].read(now, self._service.committed),
            rolled_back=self._service.rolled_back,
            receivers=self._receiver_statistics(now),
            overview=overview,
            kills=self.kills,
            activity=tuple(self._activity),
            console=self._console,
        )

    def _report_takeovers(self, overview: Overview) -> None:
        epoch = max(lane.epoch for lane in overview.lanes)
        if epoch > self._epoch:
            takeover = self._epoch > 0
            self._epoch = epoch
            self.add_activity(
                f"lanes taken over, epoch {epoch}: the killed relay is fenced"
                if takeover
                else "lanes acquired, epoch 1"
            )

    def _receiver_statistics(self, now: float) -> tuple[ReceiverStatistics, ...]:
        return tuple(
            ReceiverStatistics(
                receiver=name,
                handled=self._meters[name].read(now, self._entries[name, "handled"]),
                failed=self._entries[name, "failed"],
                rejected=self._entries[name, "rejected"],
            )
            for name in self._receivers
        )
