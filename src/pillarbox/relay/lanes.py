"""Which lanes this relay owns, under which epochs, and whether its lease still holds.

The deadline counts from before the renewal was sent, on a clock that goes on while the machine sleeps. A send begins
only with a margin of lease left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from pillarbox.core.clock import Clock
from pillarbox.core.lane import Epochs, Lease


class Ownership:
    """Lanes in this relay's hands. Changed on the relay's own loop only, except for the deadline."""

    def __init__(self, clock: Clock, *, margin: float, count: int) -> None:
        """margin: seconds of lease that must be left when a send begins: the longest that a send may take."""
        self._clock = clock
        self._margin = margin
        self._count = count
        self._leases: dict[int, Lease] = {}
        self._epochs: dict[int, int] | None = None
        self.leaving: set[int] = set()
        """Lanes to be given back once nothing of them is in flight."""
        self.deadline = 0.0
        self.relays = 1
        self.losses = 0
        """How often everything was lost: what was asked of the store before belongs to an earlier life."""
        self.on_lost: Callable[[list[int]], None] = lambda _: None
        """Called with lanes that are no longer ours, at once: nothing of them may stay in flight."""

    @property
    def epochs(self) -> Epochs:
        """The epochs of all lanes, as they are now: a later change makes another mapping."""
        if self._epochs is None:
            self._epochs = {lane: lease.epoch for lane, lease in self._leases.items()}
        return self._epochs

    @property
    def readable_epochs(self) -> dict[int, int]:
        """The epochs of the lanes to read from."""
        return {lane: lease.epoch for lane, lease in self._leases.items() if lane not in self.leaving}

    @property
    def readable(self) -> list[int]:
        """Lanes to read from."""
        return [lane for lane in self._leases if lane not in self.leaving]

    @property
    def share(self) -> int:
        return math.ceil(self._count / max(1, self.relays))

    def owns(self, lane: int) -> bool:
        return lane in self._leases

    def works(self, lane: int) -> bool:
        """Whether new messages of the lane may be taken in flight: it is ours, and it is not about to be given back."""
        return lane in self._leases and lane not in self.leaving

    def epoch(self, lane: int) -> int:
        """The fencing token of one lane; 0 if it is not ours."""
        lease = self._leases.get(lane)
        return lease.epoch if lease else 0

    def may_send(self) -> bool:
        """Enough of the lease is left for a send to end before anybody else may take the lanes."""
        return self._clock.monotonic() < self.deadline - self._margin

    def alive(self) -> bool:
        return self._clock.monotonic() < self.deadline

    def took(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._leases[lease.lane] = lease
        self._epochs = None

    def missing(self) -> int:
        """How many lanes more make this relay's fair share."""
        return max(0, self.share - len(self._leases))

    def give_up_excess(self) -> None:
        """Mark what is beyond the fair share: it is drained, then released."""
        excess = len(self._leases) - self.share - len(self.leaving)
        for lane in sorted(self._leases, reverse=True):
            if excess <= 0:
                return
            if lane not in self.leaving:
                self.leaving.add(lane)
                excess -= 1

    def lose(self, lanes: Iterable[int], epochs: Epochs) -> list[int]:
        """The store says that these lanes are not ours under these epochs; returns those that were.

        A lane that was taken back under a newer epoch meanwhile is ours, whatever became of a write under the old one.
        """
        lost = [lane for lane in lanes if lane in self._leases and self._leases[lane].epoch == epochs.get(lane)]
        for lane in lost:
            del self._leases[lane]
        self._epochs = None
        self.leaving.difference_update(lost)
        if lost:
            self.on_lost(lost)
        return lost

    def lose_all(self) -> list[int]:
        self.losses += 1
        return self.lose(list(self._leases), self.epochs)
