"""What the live view shows, gathered a few times a second: from the store's overview and from the ledger."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.overview import Overview
from pillarbox.ops.demo.ledger import LedgerReader, What
from pillarbox.ops.demo.scene import Scene
from pillarbox.ops.demo.shop import Shop

Phase = Literal["writing", "draining"]

SPAN = 1.0
"""Seconds over which a rate is measured."""
PULSE_EVERY = 0.75
PULSES = 14
"""How often a rate is remembered, to be drawn: the last ten seconds."""
HAPPENINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How many so far, how many a second now, and how that went lately."""

    total: int
    rate: float
    lately: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a receiver has written down so far; here a repeat counts again."""

    receiver: str
    handled: Pace
    failed: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One look at everything."""

    phase: Phase
    elapsed: float
    done: float | None
    """The part of the run that is over, 0 to 1; None if it has no planned end."""
    committed: Pace
    rolled_back: int
    tallies: tuple[Tally, ...]
    overview: Overview
    kills: int
    happenings: tuple[tuple[float, str], ...]
    window: str
    """Where the web console is, or what it needs; '' where none is wanted."""
    """Seconds since the start, and what happened then; the last few."""


class Meter:
    """A growing count, and its rate over the last moments."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self._rates: deque[float] = deque(maxlen=PULSES)
        self._next_pulse = 0.0

    def read(self, now: float, total: int) -> Pace:
        self._looks.append((now, total))
        while len(self._looks) > 2 and self._looks[1][0] <= now - SPAN:
            self._looks.popleft()
        (then, before), *_ = self._looks
        rate = (total - before) / (now - then) if now > then else 0.0
        if now >= self._next_pulse:
            self._next_pulse = now + PULSE_EVERY
            self._rates.append(rate)
        return Pace(total=total, rate=rate, lately=tuple(self._rates))


class Watch:
    """Looks at a demo under way. `happened` notes what is worth telling."""

    def __init__(self, scene: Scene, store: AdminStore, shop: Shop) -> None:
        self._store = store
        self._shop = shop
        self._receivers = scene.receivers
        self._reader = LedgerReader(scene.ledger)
        self._lines: Counter[tuple[str, What]] = Counter()
        self._meters = {who: Meter() for who in ("shop", *scene.receivers)}
        self._happenings: deque[tuple[float, str]] = deque(maxlen=HAPPENINGS)
        self.window = ""
        self._epoch = 0
        self._began = time.monotonic()
        self.phase: Phase = "writing"
        self.kills = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def lines(self) -> int:
        """How many lines the ledger had when last looked at."""
        return self._lines.total()

    def happened(self, what: str) -> None:
        self._happenings.append((self.elapsed, what))

    async def look(self, done: float | None) -> Figures:
        overview = await self._store.admin.inspection.overview()
        self._lines.update((entry.receiver, entry.what) for entry in self._reader.more())
        self._note_takeovers(overview)
        now = self.elapsed
        return Figures(
            phase=self.phase,
            elapsed=now,
            done=done,
            committed=self._meters["shop"].read(now, self._shop.committed),
            rolled_back=self._shop.rolled_back,
            tallies=self._tallies(now, self._receivers),
            overview=overview,
            kills=self.kills,
            happenings=tuple(self._happenings),
            window=self.window,
        )

    def _note_takeovers(self, overview: Overview) -> None:
        epoch = max(lane.epoch for lane in overview.lanes)
        if epoch > self._epoch:
            again = self._epoch > 0
            self._epoch = epoch
            self.happened(
                f"lanes taken over, epoch {epoch}: the old relay is fenced" if again else "lanes acquired, epoch 1"
            )

    def _tallies(self, now: float, receivers: Sequence[str]) -> tuple[Tally, ...]:
        return tuple(
            Tally(
                receiver=who,
                handled=self._meters[who].read(now, self._lines[who, "handled"]),
                failed=self._lines[who, "failed"],
                refused=self._lines[who, "refused"],
            )
            for who in receivers
        )
