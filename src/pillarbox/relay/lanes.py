"""Which lanes this relay owns, under which epochs, and whether its lease still holds.

The deadline counts from before the renewal was sent, on a clock that goes on while the machine sleeps. A send begins
only with a margin of lease left.
"""

from __future__ import annotations

import asyncio
import math
import platform
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pillarbox import failpoints
from pillarbox.core.clock import Clock, seconds
from pillarbox.core.errors import PillarboxError, StoreUnavailableError
from pillarbox.core.lane import Epochs, Lease, RelayCard, Renewal
from pillarbox.core.observations import (
    Announcer,
    LanesAcquired,
    LanesReleased,
    LeaseLost,
    OperatorRequestsApplied,
    RelayStateChanged,
)
from pillarbox.core.statistics import EVERY, OUTBOX, Carried, Level
from pillarbox.core.store import CarriedOut, Store

if TYPE_CHECKING:
    from pillarbox.relay.config import RelayConfig
    from pillarbox.relay.crash_guard import Suspicion
    from pillarbox.relay.decide import Decider
    from pillarbox.relay.destinations import Gates
    from pillarbox.relay.fetch import Fetcher
    from pillarbox.relay.heartbeat import Pulse
    from pillarbox.relay.in_flight import InFlight
    from pillarbox.relay.retention import Figures, Housekeeping


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


SHOWN_AFTER = 1.0
DONE_AT_ONCE = 1000
"""Requests of people, per round."""
REPORTED_AT_ONCE = 100
"""Destinations whose state is written, per round; the others follow in the next."""


class Tending:
    """Keeps one relay alive among the others."""

    def __init__(
        self,
        *,
        relay: str,
        name: str,
        store: Store,
        pulse: Pulse,
        ownership: Ownership,
        suspicion: Suspicion,
        in_flight: InFlight,
        gates: Gates,
        decider: Decider,
        fetcher: Fetcher,
        figures: Figures,
        housekeeping: Housekeeping,
        config: RelayConfig,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._name = name
        self._store = store
        self._pulse = pulse
        self._ownership = ownership
        self._suspicion = suspicion
        self._in_flight = in_flight
        self._gates = gates
        self._decider = decider
        self._fetcher = fetcher
        self._figures = figures
        self._housekeeping = housekeeping
        self._config = config
        self._clock = clock
        self._announce = announce
        self._lease = seconds(config.lease)
        self._others: tuple[Mapping[str, str], ...] = ()
        self._next_sample = 0.0
        self._asked_to_drain = False
        self._begins_anew = False
        """Lanes may be ours without our knowing."""
        self._told: RelayStateChanged | None = None
        self._hurried = asyncio.Event()
        self.leaving = False
        """Take no more lanes and do nothing for people: the relay drains."""
        self.on_change: Callable[[], None] = lambda: None
        """Told whenever there may be something new to read."""
        self.on_drain: Callable[[], None] = lambda: None
        """Told when a person asked this relay to drain."""
        self.on_round: Callable[[], None] = lambda: None
        """Told after each round."""

    # -- the lease ------------------------------------------------------------------------------------------------

    async def join(self) -> None:
        """Begin to live, or begin anew after the lease was lost."""
        card = RelayCard(id=self.relay, name=self._name, host=platform.node(), version=_release())
        self._ownership.lose_all()
        began = self._clock.monotonic()
        # A lane may still name this relay from before: it must not look owned by a relay that does not know of it.
        await self._store.lanes.release(self.relay)
        await self._store.lanes.join(card, lease=self._lease)
        self._asked_to_drain = self._begins_anew = False
        self._pulse.thread = threading.get_ident()
        self._pulse.ticked = began
        self._pulse.joined = True
        self._ownership.deadline = began + self._lease

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        """The heartbeat renewed the lease. Called on its thread."""
        self._ownership.deadline = deadline
        self._others = renewal.others
        self._asked_to_drain = renewal.drain

    def cut_off(self) -> None:
        """The session that shows this relay alive has ended: begin no send until the lease was renewed. Called on the
        heartbeat's thread."""
        self._ownership.deadline = 0.0

    def hurry(self) -> None:
        """Lanes can be taken: begin the next round now."""
        self._hurried.set()

    def lease_lost(self, reason: str) -> None:
        """Everything is lost; the next round joins again."""
        # Also where the news comes late: a lane that the store takes for ours and we do not would lie idle.
        self._pulse.joined = False
        self._lose_all(reason)

    def _lose_all(self, reason: str) -> None:
        self._announce(LeaseLost(relay=self.relay, reason=reason))
        self._ownership.lose_all()
        self._ownership.deadline = 0.0

    async def leave(self) -> None:
        """Give everything back and be gone."""
        lanes = tuple(sorted(self._ownership.lose_all()))
        # What was cut off by the end is met again by whoever works the lanes next, this relay included.
        self._in_flight.drop_lanes(lanes)
        try:
            if carried := self._figures.take():
                await self._store.statistics.add(self.relay, carried)
            await self._clear_the_innocent()
            await self._store.lanes.release(self.relay)
            await self._store.wakeup.request(self.relay, 0)
        except PillarboxError:
            # Its lease ends by itself.
            return
        if lanes:
            self._announce(LanesReleased(relay=self.relay, lanes=lanes))

    # -- one round after another ----------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            now = self._clock.monotonic()
            self._pulse.ticked = now
            self._pulse.in_hand = list(self._in_flight.held_longer_than(SHOWN_AFTER, now))
            self._pulse.breakers = self._gates.states()
            self._tell_what_it_holds()
            # Before any lane is taken: what people closed must be closed before the first message is read.
            await self._tend_gates()
            if self._asked_to_drain and not self.leaving:
                self.on_drain()
            if not self.leaving:
                if self._begins_anew or not self._pulse.joined:
                    await self.join()
                await self._tend_lanes()
                await self._clear_the_innocent()
                await self._do_what_was_asked()
                await self._tell_figures(now)
            self.on_round()
            await self._pause(seconds(self._config.heartbeat) / 2)

    async def _pause(self, length: float) -> None:
        end = self._clock.monotonic() + length
        if not self.leaving:
            await self._housekeeping.work(until=end)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end - self._clock.monotonic())):
                await self._hurried.wait()
        self._hurried.clear()

    def _tell_what_it_holds(self) -> None:
        held = RelayStateChanged(
            relay=self.relay,
            lanes=len(self._ownership.epochs),
            in_flight=len(self._in_flight),
            breakers=self._gates.states(),
            rates=self._gates.rates(),
            paused=self._gates.paused(),
        )
        if held != self._told:
            self._told = held
            self._announce(held)

    async def _tend_lanes(self) -> None:
        shut_out = self._gates.shut_out(self._others)
        if shut_out:
            self._ownership.leaving.update(self._ownership.epochs)
        self._ownership.relays = self._gates.sharing(self._others)
        self._ownership.give_up_excess()
        busy = self._in_flight.lanes()
        self._decider.let_go(self._in_flight.unsent(lanes=self._ownership.leaving))
        if free := self._ownership.leaving - busy:
            await self._release(free)
        if not shut_out and (missing := self._ownership.missing()) and self._ownership.alive():
            losses = self._ownership.losses
            leases = await self._take(missing)
            # If everything was lost meanwhile these are lost, too: to join again gives them back.
            if leases and self._ownership.losses == losses:
                self._ownership.took(leases)
                self._suspicion.took(leases)
                crashed = tuple(lease.lane for lease in leases if lease.crashes)
                lanes = tuple(lease.lane for lease in leases)
                self._announce(LanesAcquired(relay=self.relay, lanes=lanes, crashed=crashed))
                self._fetcher.look_for_headless()
                self.on_change()

    async def _take(self, most: int) -> list[Lease]:
        try:
            return await self._store.lanes.take(self.relay, most=most)
        except StoreUnavailableError:
            # Begin anew, or nobody would ever work them. The lease is renewed meanwhile: the relay is seen, and why.
            self._begins_anew = True
            self._lose_all("the answer to a take was lost")
            raise

    async def _clear_the_innocent(self) -> None:
        """Attempts that this relay wrote count in lanes that it lost since, although it lives: have them taken back."""
        outlived = self._suspicion.outlived(self._ownership.owns)
        if not outlived:
            return
        if not self._config.at_most_once:  # there, what may have been sent is not sent again
            await self._store.writes.request_retry(outlived, by=self.relay)
        self._suspicion.cleared(outlived)

    async def _release(self, lanes: set[int]) -> None:
        epochs = {lane: epoch for lane, epoch in self._ownership.epochs.items() if lane in lanes}
        failpoints.hit("before-release")
        # Forgotten only once it is known: a lane that the store gives to nobody else must not be orphaned.
        await self._store.lanes.release(self.relay, epochs)
        failpoints.hit("after-release")
        self._ownership.lose(lanes, epochs)
        self._announce(LanesReleased(relay=self.relay, lanes=tuple(sorted(lanes))))

    async def _do_what_was_asked(self) -> None:
        if not self._ownership.epochs:
            return
        async with self._fetcher.between_looks():
            done, deferred = await self._carry_out()
            # What waits for its turn is let go of; what is being sent keeps its request until it is decided.
            if deferred and (unsent := self._in_flight.unsent_from(deferred)):
                self._decider.let_go(unsent)
                done += (await self._carry_out()).done
        if done:
            self._announce(OperatorRequestsApplied(relay=self.relay, count=done))
            self._fetcher.due_within(0)
            # A head may be gone, and what waited behind it is free.
            self._fetcher.look_for_headless()
            self.on_change()

    async def _carry_out(self) -> CarriedOut:
        epochs, in_flight = self._ownership.epochs, self._in_flight.places
        return await self._store.writes.carry_out(epochs, limit=DONE_AT_ONCE, in_flight=set(in_flight))

    async def _tell_figures(self, now: float) -> None:
        """What was carried; and, from the owner of the first lane, how much lies there."""
        if now < self._next_sample:
            return
        self._next_sample = now + EVERY
        carried = self._figures.take()
        figures: dict[str, Carried | Level] = dict(carried)
        try:
            if self._ownership.owns(0):
                figures[OUTBOX] = await self._level()
            if figures:
                await self._store.statistics.add(self.relay, figures)
        except StoreUnavailableError:
            self._figures.put_back(carried)
            raise

    async def _level(self) -> Level:
        seen = await self._store.statistics.backlog()
        return Level(recorded=seen.recorded, backlog=seen.messages, oldest=seen.oldest, dead=seen.dead)

    async def _tend_gates(self) -> None:
        for destination, change in list(self._gates.changed.items())[:REPORTED_AT_ONCE]:
            error, next_try = change
            await self._store.destinations.report(
                destination, error=error or None, next_try=next_try if error and next_try else None
            )
            # Only once it is written, and unless it changed again meanwhile.
            if self._gates.changed.get(destination) == change:
                del self._gates.changed[destination]
        self._gates.steer(await self._store.destinations.overrides(), relays=self._ownership.relays)
        for name in self._gates.shut():
            self._decider.let_go(self._in_flight.unsent(name))


@cache
def _release() -> str:
    """Of this package; '' where it runs without having been installed."""
    try:
        return version("pillarbox")
    except PackageNotFoundError:
        return ""
