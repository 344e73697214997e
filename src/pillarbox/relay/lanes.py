"""Which lanes this relay owns, under which epochs, and the coordinator that acquires and releases them.

The deadline of the lease counts from before the renewal was sent, on a clock that continues while the machine sleeps. A
send begins only while enough of the lease is left for it to end.
"""

from __future__ import annotations

import asyncio
import math
import platform
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pillarbox import failpoints
from pillarbox.core.clock import Clock, seconds
from pillarbox.core.errors import PillarboxError, StoreUnavailableError
from pillarbox.core.lane import Epochs, Lease, RelayCard, Renewal
from pillarbox.core.observations import (
    LanesAcquired,
    LanesReleased,
    LeaseLost,
    OperatorRequestsApplied,
    RelayStateChanged,
)
from pillarbox.core.outcome import CarriedOut
from pillarbox.relay.retention import report_statistics

if TYPE_CHECKING:
    from pillarbox.relay.fetch import Fetcher
    from pillarbox.relay.in_flight import InFlight
    from pillarbox.relay.retention import RetentionJob
    from pillarbox.relay.supervisor import RelayContext

SHOWN_AFTER = 1.0
"""Seconds in flight after which a message is shown as PROCESSING."""
REQUESTS_PER_ROUND = 1000
"""Operator requests that one round carries out."""


class Ownership:
    """The lanes of this relay. Changed on the relay's own loop only, except for the deadline."""

    def __init__(self, clock: Clock, in_flight: InFlight, *, margin: float, count: int) -> None:
        """margin: seconds of lease that must be left when a send begins: the longest that a send may take. count: how
        many lanes the store has."""
        self._clock = clock
        self._in_flight = in_flight
        self._margin = margin
        self._count = count
        self._leases: dict[int, Lease] = {}
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
            self._epochs = {lane: lease.epoch for lane, lease in self._leases.items()}
        return self._epochs

    @property
    def fetchable_epochs(self) -> dict[int, int]:
        """The epochs of the lanes to fetch from."""
        return {lane: lease.epoch for lane, lease in self._leases.items() if lane not in self.leaving}

    @property
    def fetchable(self) -> list[int]:
        """Lanes to fetch from."""
        return [lane for lane in self._leases if lane not in self.leaving]

    @property
    def share(self) -> int:
        return math.ceil(self._count / max(1, self.relays))

    def owns(self, lane: int) -> bool:
        return lane in self._leases

    def works(self, lane: int) -> bool:
        """Whether messages of the lane may be put in flight: the relay owns it and is not about to release it."""
        return lane in self._leases and lane not in self.leaving

    def epoch(self, lane: int) -> int:
        """The fencing token of one lane; 0 if another relay owns it."""
        lease = self._leases.get(lane)
        return lease.epoch if lease else 0

    def may_send(self) -> bool:
        """Whether enough of the lease is left for a send to end before another relay may take the lanes."""
        return self._clock.monotonic() < self.deadline - self._margin

    def alive(self) -> bool:
        return self._clock.monotonic() < self.deadline

    def acquired(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._leases[lease.lane] = lease
        self._epochs = None

    def missing(self) -> int:
        """How many more lanes make this relay's fair share."""
        return max(0, self.share - len(self._leases))

    def mark_excess(self) -> None:
        """Mark lanes beyond the fair share: they are drained, then released."""
        excess = len(self._leases) - self.share - len(self.leaving)
        for lane in sorted(self._leases, reverse=True):
            if excess <= 0:
                return
            if lane not in self.leaving:
                self.leaving.add(lane)
                excess -= 1

    def lose(self, lanes: Iterable[int], epochs: Epochs) -> list[int]:
        """The store reports that this relay does not own these lanes under these epochs; returns those it did own.

        A lane that the relay acquired again under a newer epoch stays, whatever became of a write under the old one.
        """
        lost = [lane for lane in lanes if lane in self._leases and self._leases[lane].epoch == epochs.get(lane)]
        for lane in lost:
            del self._leases[lane]
        self._epochs = None
        self.leaving.difference_update(lost)
        if lost:
            # At once: nothing of them may stay in flight.
            self._in_flight.drop_lanes(lost)
        return lost

    def lose_all(self) -> list[int]:
        self.losses += 1
        return self.lose(list(self._leases), self.epochs)


class Coordinator:
    """Coordinates one relay with the others, twice per heartbeat: lanes, operator requests, destinations, retention."""

    def __init__(self, context: RelayContext, fetcher: Fetcher, retention: RetentionJob) -> None:
        self._context = context
        self._fetcher = fetcher
        self._retention = retention
        self._ownership = context.ownership
        self._in_flight = context.in_flight
        self._pulse = context.pulse
        self._store = context.store
        self._clock = context.clock
        self._lease = seconds(context.config.lease)
        self._others: tuple[Mapping[str, str], ...] = ()
        self._drain_requested = False
        self._must_rejoin = False
        """The store may have given this relay lanes that it does not know of."""
        self._announced: RelayStateChanged | None = None
        self._hurried = asyncio.Event()
        self.rounds = 0
        """Rounds completed so far."""

    # -- the lease ------------------------------------------------------------------------------------------------

    async def join(self) -> None:
        """Register the relay, at the start or again after the lease was lost."""
        card = RelayCard(id=self._context.relay, name=self._context.name, host=platform.node(), version=_release())
        self._ownership.lose_all()
        began = self._clock.monotonic()
        # A lane may still name this relay as its owner from before, without the relay knowing.
        await self._store.lanes.release(self._context.relay)
        await self._store.lanes.join(card, lease=self._lease)
        self._drain_requested = self._must_rejoin = False
        self._pulse.thread = threading.get_ident()
        self._pulse.ticked = began
        self._pulse.joined = True
        self._ownership.deadline = began + self._lease

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        """The heartbeat renewed the lease. Called on its thread."""
        self._ownership.deadline = deadline
        self._others = renewal.others
        self._drain_requested = renewal.drain

    def session_lost(self) -> None:
        """The session that shows this relay alive has ended: begin no send until the lease is renewed. Called on the
        heartbeat's thread."""
        self._ownership.deadline = 0.0

    def hurry(self) -> None:
        """Lanes can be acquired: begin the next round now."""
        self._hurried.set()

    def lease_lost(self, reason: str) -> None:
        """All lanes are lost; the next round joins again."""
        # Also if the loss is noticed late: a lane that only the store assigns to this relay would have no worker.
        self._pulse.joined = False
        self._lose_all(reason)

    def _lose_all(self, reason: str) -> None:
        self._context.announce(LeaseLost(relay=self._context.relay, reason=reason))
        self._ownership.lose_all()
        self._ownership.deadline = 0.0

    async def leave(self) -> None:
        """Release all lanes and unregister the relay."""
        lanes = tuple(sorted(self._ownership.lose_all()))
        # The next owner of the lanes, this relay included, fetches again what the end interrupted.
        self._in_flight.drop_lanes(lanes)
        try:
            if carried := self._context.statistics.take():
                await self._store.statistics.add(self._context.relay, carried)
            await self._context.crash_guard.take_back(self._context)
            await self._store.lanes.release(self._context.relay)
            await self._store.wakeup.request(self._context.relay, 0)
        except PillarboxError:
            # The lease ends by itself.
            return
        if lanes:
            self._context.announce(LanesReleased(relay=self._context.relay, lanes=lanes))

    # -- one round after another ----------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            now = self._clock.monotonic()
            self._pulse.ticked = now
            self._pulse.in_flight = list(self._in_flight.held_longer_than(SHOWN_AFTER, now))
            self._pulse.breakers = self._context.destinations.states()
            self._announce_state()
            # Before any lane is taken: overrides must be known before the first message is fetched.
            await self._context.destinations.exchange(self._context)
            if self._drain_requested and not self._context.lifecycle.draining:
                self._context.lifecycle.stop()
            if not self._context.lifecycle.draining:
                if self._must_rejoin or not self._pulse.joined:
                    await self.join()
                await self._balance()
                await self._context.crash_guard.take_back(self._context)
                await self._carry_out_requests()
                await report_statistics(self._context, now)
            self.rounds += 1
            await self._pause(seconds(self._context.config.heartbeat) / 2)

    async def _pause(self, length: float) -> None:
        end = self._clock.monotonic() + length
        if not self._context.lifecycle.draining:
            await self._retention.run(until=end)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end - self._clock.monotonic())):
                await self._hurried.wait()
        self._hurried.clear()

    def _announce_state(self) -> None:
        held = RelayStateChanged(
            relay=self._context.relay,
            lanes=len(self._ownership.epochs),
            in_flight=len(self._in_flight),
            breakers=self._context.destinations.states(),
            rates=self._context.destinations.rates(),
            paused=self._context.destinations.paused(),
        )
        if held != self._announced:
            self._announced = held
            self._context.announce(held)

    async def _balance(self) -> None:
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
            leases = await self._take(missing)
            # If all lanes were lost meanwhile these are, too: joining again releases them.
            if leases and self._ownership.losses == losses:
                self._ownership.acquired(leases)
                self._context.crash_guard.acquired(leases)
                crashed = tuple(lease.lane for lease in leases if lease.crashes)
                lanes = tuple(lease.lane for lease in leases)
                self._context.announce(LanesAcquired(relay=self._context.relay, lanes=lanes, crashed=crashed))
                self._context.schedule.search_orphans()
                self._context.wakeups.all()

    async def _take(self, most: int) -> list[Lease]:
        try:
            return await self._store.lanes.take(self._context.relay, most=most)
        except StoreUnavailableError:
            # Join again, or lanes that it took would have no worker. Meanwhile the lease is renewed.
            self._must_rejoin = True
            self._lose_all("the answer to a take was lost")
            raise

    async def _release(self, lanes: set[int]) -> None:
        epochs = {lane: epoch for lane, epoch in self._ownership.epochs.items() if lane in lanes}
        failpoints.hit("before-release")
        # Dropped only once the store confirms it: otherwise the lane would have no worker.
        await self._store.lanes.release(self._context.relay, epochs)
        failpoints.hit("after-release")
        self._ownership.lose(lanes, epochs)
        self._context.announce(LanesReleased(relay=self._context.relay, lanes=tuple(sorted(lanes))))

    async def _carry_out_requests(self) -> None:
        if not self._ownership.epochs:
            return
        async with self._fetcher.between_rounds():
            done, deferred = await self._carry_out()
            # Unsent messages are released; the request for one that is being sent stays open until it is decided.
            if deferred and (unsent := self._in_flight.unsent_from(deferred)):
                self._context.release(unsent)
                done += (await self._carry_out()).done
        if done:
            self._context.announce(OperatorRequestsApplied(relay=self._context.relay, count=done))
            self._context.schedule.due_within(0)
            # The first message of a queue may be gone, and the next may come.
            self._context.schedule.search_orphans()
            self._context.wakeups.all()

    async def _carry_out(self) -> CarriedOut:
        in_flight = set(self._in_flight.positions)
        return await self._store.writes.carry_out(self._ownership.epochs, limit=REQUESTS_PER_ROUND, in_flight=in_flight)


@cache
def _release() -> str:
    """Of this package; '' where it runs without having been installed."""
    try:
        return version("pillarbox")
    except PackageNotFoundError:
        return ""
