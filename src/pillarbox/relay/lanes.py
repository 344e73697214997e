"""Which lanes this relay owns, under which epochs, and how it acquires and releases them.

The deadline of the lease counts from before the renewal was sent, on a clock that continues while the machine sleeps. A
send begins only while enough of the lease is left for it to end.
"""

from __future__ import annotations

import math
import platform
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pillarbox import failpoints
from pillarbox.core.clock import Clock, seconds
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.lane import Epochs, InFlightMessage, OwnedLane, RelayRegistration, Renewal
from pillarbox.core.observations import LanesAcquired, LanesReleased, LeaseLost

if TYPE_CHECKING:
    from pillarbox.relay.in_flight import InFlight
    from pillarbox.relay.relay import RelayContext


@dataclass(slots=True)
class HeartbeatState:
    """What the relay's loop and the heartbeat share; plain assignments, safe between two threads."""

    relay: str = ""
    ticked: float = 0.0
    in_flight: Sequence[InFlightMessage] = ()
    breakers: Mapping[str, str] | None = None
    stalled: str = ""
    """Why the relay makes no progress although it could; "" while it does."""
    joined: bool = False
    """Whether there is a lease to renew."""
    thread: int = field(default_factory=threading.get_ident)
    """The thread of the relay's loop."""

    def stack(self) -> str:
        frame = sys._current_frames().get(self.thread)  # pyright: ignore[reportPrivateUsage]  # a documented function
        return "".join(traceback.format_stack(frame, limit=20)) if frame is not None else "(its thread has ended)"


class Ownership:
    """The lanes of this relay. Changed on the relay's own loop only, except for the deadline."""

    def __init__(self, clock: Clock, in_flight: InFlight, *, margin: float, count: int) -> None:
        """margin: seconds of lease that must be left when a send begins: the longest that a send may take. count: how
        many lanes the store has."""
        self._clock = clock
        self._in_flight = in_flight
        self._margin = margin
        self._count = count
        self._owned: dict[int, OwnedLane] = {}
        self._epochs: dict[int, int] | None = None
        self.leaving: set[int] = set()
        """Lanes to be released once nothing of them is in flight."""
        self.deadline = 0.0
        self.relays = 1
        self.losses = 0
        """How often all lanes were lost: answers of the store to requests from before are void."""

    @property
    def epochs(self) -> Epochs:
        """The epochs of all lanes, as they are now: a later change makes another mapping."""
        if self._epochs is None:
            self._epochs = {lane: owned.epoch for lane, owned in self._owned.items()}
        return self._epochs

    @property
    def fetchable_epochs(self) -> dict[int, int]:
        """The epochs of the lanes to fetch from."""
        return {lane: owned.epoch for lane, owned in self._owned.items() if lane not in self.leaving}

    @property
    def fetchable(self) -> list[int]:
        """Lanes to fetch from."""
        return [lane for lane in self._owned if lane not in self.leaving]

    @property
    def share(self) -> int:
        return math.ceil(self._count / max(1, self.relays))

    def owns(self, lane: int) -> bool:
        return lane in self._owned

    def works(self, lane: int) -> bool:
        """Whether messages of the lane may be put in flight: the relay owns it and is not about to release it."""
        return lane in self._owned and lane not in self.leaving

    def may_send(self) -> bool:
        """Whether enough of the lease is left for a send to end before another relay may take the lanes."""
        return self._clock.monotonic() < self.deadline - self._margin

    def alive(self) -> bool:
        return self._clock.monotonic() < self.deadline

    def acquired(self, lanes: Iterable[OwnedLane]) -> None:
        for owned in lanes:
            self._owned[owned.lane] = owned
        self._epochs = None

    def missing(self) -> int:
        """How many more lanes make this relay's fair share."""
        return max(0, self.share - len(self._owned))

    def mark_excess(self) -> None:
        """Mark lanes beyond the fair share: they are drained, then released."""
        excess = len(self._owned) - self.share - len(self.leaving)
        for lane in sorted(self._owned, reverse=True):
            if excess <= 0:
                return
            if lane not in self.leaving:
                self.leaving.add(lane)
                excess -= 1

    def lose(self, lanes: Iterable[int], epochs: Epochs) -> list[int]:
        """The store reports that this relay does not own these lanes under these epochs; returns those it did own.

        A lane that the relay acquired again under a newer epoch stays, whatever became of a write under the old one.
        """
        lost = [lane for lane in lanes if lane in self._owned and self._owned[lane].epoch == epochs.get(lane)]
        for lane in lost:
            del self._owned[lane]
        self._epochs = None
        self.leaving.difference_update(lost)
        if lost:
            # At once: nothing of them may stay in flight.
            self._in_flight.drop_lanes(lost)
        return lost

    def lose_all(self) -> list[int]:
        self.losses += 1
        return self.lose(list(self._owned), self.epochs)


class LaneBalancer:
    """Joins the other relays, and acquires and releases lanes until this relay owns its fair share."""

    def __init__(self, context: RelayContext) -> None:
        self._context = context
        self._ownership = context.ownership
        self._in_flight = context.in_flight
        self._heartbeat = context.heartbeat
        self._store = context.store
        self._clock = context.clock
        self._lease = seconds(context.config.lease)
        self._others: tuple[Mapping[str, str], ...] = ()
        self._must_rejoin = False
        """The store may have given this relay lanes that it does not know of."""
        self.drain_requested = False
        """Whether an operator asked this relay to drain."""

    # -- the lease ------------------------------------------------------------------------------------------------

    @property
    def must_join(self) -> bool:
        """Whether the relay has no lease, or may own lanes that it does not know of."""
        return self._must_rejoin or not self._heartbeat.joined

    async def join(self) -> None:
        """Register the relay, at the start or again after the lease was lost."""
        registration = RelayRegistration(
            id=self._context.relay, name=self._context.name, host=platform.node(), version=_package_version()
        )
        self._ownership.lose_all()
        began = self._clock.monotonic()
        # A lane may still name this relay as its owner from before, without the relay knowing.
        await self._store.lanes.release(self._context.relay)
        await self._store.lanes.join(registration, lease=self._lease)
        self.drain_requested = self._must_rejoin = False
        self._heartbeat.thread = threading.get_ident()
        self._heartbeat.ticked = began
        self._heartbeat.joined = True
        self._ownership.deadline = began + self._lease

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        """The heartbeat renewed the lease. Called on its thread."""
        self._ownership.deadline = deadline
        self._others = renewal.others
        self.drain_requested = renewal.drain

    def session_lost(self) -> None:
        """The session that shows this relay alive has ended: begin no send until the lease is renewed. Called on the
        heartbeat's thread."""
        self._ownership.deadline = 0.0

    def lease_lost(self, reason: str) -> None:
        """All lanes are lost; the next round joins again."""
        # Also if the loss is noticed late: a lane that only the store assigns to this relay would have no worker.
        self._heartbeat.joined = False
        self._lose_all(reason)

    def _lose_all(self, reason: str) -> None:
        self._context.announce(LeaseLost(relay=self._context.relay, reason=reason))
        self._ownership.lose_all()
        self._ownership.deadline = 0.0

    # -- the lanes ------------------------------------------------------------------------------------------------

    def shown_breakers(self, *, reachable: bool) -> Mapping[str, str]:
        """The breakers, for other relays to decide which of them own lanes.

        A relay without a lane sends nothing, and does not know the destinations that event types create. While its
        transports are `reachable`, it shows those of the others as closed: one that cannot send releases its lanes.
        """
        known = self._context.destinations.states()
        if not reachable or self._ownership.epochs:
            return known
        return dict.fromkeys((name for theirs in self._others for name in theirs), "closed") | dict(known)

    async def balance(self) -> None:
        """Release lanes beyond the fair share, and acquire those that are missing."""
        excluded = self._context.destinations.excluded(self._others)
        if excluded:
            self._ownership.leaving.update(self._ownership.epochs)
        self._ownership.relays = self._context.destinations.sharing(self._others)
        self._ownership.mark_excess()
        busy = self._in_flight.lanes()
        self._context.release(self._in_flight.unsent(lanes=self._ownership.leaving))
        if free := self._ownership.leaving - busy:
            await self._release(free)
        if not excluded and (missing := self._ownership.missing()) and self._ownership.alive():
            losses = self._ownership.losses
            acquired = await self._acquire(missing)
            # If all lanes were lost meanwhile these are, too: joining again releases them.
            if acquired and self._ownership.losses == losses:
                self._ownership.acquired(acquired)
                self._context.crash_guard.acquired(acquired)
                crashed = tuple(owned.lane for owned in acquired if owned.crashes)
                lanes = tuple(owned.lane for owned in acquired)
                self._context.announce(LanesAcquired(relay=self._context.relay, lanes=lanes, crashed=crashed))
                self._context.schedule.search_orphans()
                self._context.wakeups.all()

    async def _acquire(self, limit: int) -> list[OwnedLane]:
        try:
            return await self._store.lanes.acquire(self._context.relay, limit=limit)
        except StoreUnavailableError:
            # Join again, or acquired lanes would have no worker. Meanwhile the lease is renewed.
            self._must_rejoin = True
            self._lose_all("the response to an acquisition of lanes was lost")
            raise

    async def _release(self, lanes: set[int]) -> None:
        epochs = {lane: epoch for lane, epoch in self._ownership.epochs.items() if lane in lanes}
        failpoints.hit("before-release")
        # Dropped only once the store confirms it: otherwise the lane would have no worker.
        await self._store.lanes.release(self._context.relay, epochs)
        failpoints.hit("after-release")
        self._ownership.lose(lanes, epochs)
        self._context.announce(LanesReleased(relay=self._context.relay, lanes=tuple(sorted(lanes))))


@cache
def _package_version() -> str:
    """The version of this package; '' where it runs without having been installed."""
    try:
        return version("pillarbox")
    except PackageNotFoundError:
        return ""
