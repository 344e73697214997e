"""The heartbeat: renews the lease on a loop of its own, because a blocked event loop must not lose the lanes.

It renews only while the relay's loop has ticked within `stall_limit`, or a wedged relay would keep its lanes for ever:
then it lets go. The deadline it sets counts from before the renewal was sent.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pillarbox.core.clock import Chance, Clock, seconds
from pillarbox.core.errors import PillarboxError
from pillarbox.core.lane import InHand, Renewal
from pillarbox.core.observations import Announcer, RelayStalled, RelayStallEnded
from pillarbox.core.retry import Backoff
from pillarbox.core.store import Store
from pillarbox.relay.config import RelayConfig

if TYPE_CHECKING:
    from pillarbox.relay.lanes import Ownership
    from pillarbox.relay.send import Sender
    from pillarbox.relay.settle import Settlement

RECONNECTS_WITHIN = 0.3
"""Seconds that a relay whose session ended has to begin another one before its lease is ended."""
LONGEST_FAREWELL = 5.0
"""Seconds that a heartbeat may take to end before the relay ends without it."""


@dataclass(slots=True)
class Pulse:
    """What the relay's loop and the heartbeat tell each other; plain assignments, safe between two threads."""

    relay: str = ""
    ticked: float = 0.0
    in_hand: Sequence[InHand] = ()
    breakers: Mapping[str, str] | None = None
    stalled: str = ""
    """Why the relay makes no progress although it could; "" while it does."""
    joined: bool = False
    """Whether there is a lease to renew."""
    thread: int = field(default_factory=threading.get_ident)
    """The thread of the relay's loop."""

    def whereabouts(self) -> str:
        frame = sys._current_frames().get(self.thread)
        return "".join(traceback.format_stack(frame, limit=20)) if frame is not None else "(its thread has ended)"


class Heartbeat:
    """Beats until it is ended, or finds the relay's loop wedged."""

    def __init__(
        self,
        *,
        store: Store,
        pulse: Pulse,
        clock: Clock,
        config: RelayConfig,
        on_renewed: Callable[[float, Renewal], None],
        on_lost: Callable[[str], None],
        on_stalled: Callable[[str], None],
        on_failed: Callable[[Exception], None],
        on_cut_off: Callable[[], None],
        on_expired: Callable[[], None],
        chance: Chance,
    ) -> None:
        """
        on_cut_off: the session ended: others may take the lanes before the lease ends.
        on_expired: the lease of a dead relay was ended: its lanes can be taken.
        """
        self._store = store
        self._pulse = pulse
        self._clock = clock
        self._lease = seconds(config.lease)
        self._interval = seconds(config.heartbeat)
        self._stall_limit = seconds(config.stall_limit)
        self._on_renewed = on_renewed
        self._on_lost = on_lost
        self._on_stalled = on_stalled
        self._on_failed = on_failed
        self._on_cut_off = on_cut_off
        self._on_expired = on_expired
        self._backoff = Backoff(chance, longest=self._interval)
        self._relays = 1
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Beat on the loop that runs now."""
        self._task = asyncio.create_task(self.run())

    async def end(self) -> None:
        """Beat no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def run(self) -> None:
        try:
            await self._beat_on()
        except Exception as error:
            # Without a heartbeat the relay would sit there with its lease run out.
            self._on_failed(error)

    async def _beat_on(self) -> None:
        while True:
            began = self._clock.monotonic()
            silent = began - self._pulse.ticked
            if silent > self._stall_limit:
                await self._let_go(silent)
                return
            pause = self._interval
            if self._pulse.joined and not await self._beat(began):
                pause = self._backoff.next()
            await self._rest(max(0.0, pause - (self._clock.monotonic() - began)))

    async def _rest(self, length: float) -> None:
        """Pause until the next beat; half-way, look for relays that died."""
        end = self._clock.monotonic() + length
        while (left := end - self._clock.monotonic()) > 0:
            if await self._cut_off_within(min(left, self._interval / 2)):
                self._on_cut_off()
                await self._clock.sleep(self._backoff.next())
                return
            if self._pulse.joined and self._relays > 1:
                await self._end_leases_of_the_dead()

    async def _cut_off_within(self, length: float) -> bool:
        """Pause; True as soon as the session ended: it is begun anew at once, and nothing is sent until it is."""
        pause = asyncio.create_task(self._clock.sleep(length))
        cut_off = asyncio.create_task(self._store.lanes.session_ended())
        try:
            await asyncio.wait([pause, cut_off], return_when=asyncio.FIRST_COMPLETED)
            return cut_off.done() and not pause.done()
        finally:
            pause.cancel()
            cut_off.cancel()

    async def _end_leases_of_the_dead(self) -> None:
        lanes = self._store.lanes
        with suppress(PillarboxError):
            if sessions := await lanes.ended(self._pulse.relay):
                # A relay that lives reconnects at once.
                await self._clock.sleep(RECONNECTS_WITHIN)
                if await lanes.expire(sessions):
                    # Learn how many relays are left before their lanes are taken.
                    await self._beat(self._clock.monotonic())
                    self._on_expired()

    async def _let_go(self, silent: float) -> None:
        """The relay's loop is wedged: give its lanes away in its name, and show where it hangs."""
        self._pulse.joined = False
        with suppress(PillarboxError):
            await self._store.lanes.release(self._pulse.relay)
        self._on_stalled(f"the event loop has been silent for {silent:.0f} s; it hangs at\n{self._pulse.whereabouts()}")

    async def _beat(self, began: float) -> bool:
        """Renew the lease; False: the store cannot be reached."""
        pulse = self._pulse
        try:
            renewal = await self._store.lanes.renew(
                pulse.relay,
                lease=self._lease,
                in_hand=pulse.in_hand,
                breakers=pulse.breakers or {},
                stalled=pulse.stalled,
            )
        except PillarboxError:
            # The store is away: the deadline passes by itself if that lasts.
            return False
        self._backoff.reset()
        if renewal is None:
            pulse.joined = False
            self._on_lost("the lease ended before it was renewed")
            return True
        self._relays = renewal.relays
        self._on_renewed(began + self._lease, renewal)
        return True


class HeartbeatThread:
    """A heartbeat on a thread and a loop of its own, with a store of its own."""

    def __init__(self, make: Callable[[Store], Heartbeat], store: Store) -> None:
        self._make = make
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._told_to_end = asyncio.Event()
        self._ended = asyncio.Event()
        self._relays_loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Beat from now on."""
        threading.Thread(target=self._run, name="pillarbox-heartbeat", daemon=True).start()

    async def end(self) -> None:
        """Beat no more; returns once the thread has let go of its connection, or hangs."""
        with suppress(RuntimeError):  # it ended by itself
            self._loop.call_soon_threadsafe(self._told_to_end.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_FAREWELL):
                await self._ended.wait()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._beat())
        finally:
            self._loop.close()
            with suppress(RuntimeError):  # nobody waits any more
                self._relays_loop.call_soon_threadsafe(self._ended.set)

    async def _beat(self) -> None:
        store = self._store.beside()
        told = asyncio.create_task(self._told_to_end.wait())
        beating = asyncio.create_task(self._make(store).run())
        try:
            await asyncio.wait([told, beating], return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            beating.cancel()
            await asyncio.gather(told, beating, return_exceptions=True)
            await store.aclose()


RECOVERY = 15.0
"""Seconds beyond the lease within which every deliverable event leaves after a fault ended."""


class _Opportunity(NamedTuple):
    """A stage that could make progress now."""

    stage: str
    subject: Hashable
    """What of the stage: each transport sends by itself."""
    mark: Hashable
    """Another one than at the last check: there was progress."""
    reason: str


@dataclass(slots=True)
class _Wait:
    mark: Hashable
    seconds: float = 0.0


class Progress:
    """Watches one relay."""

    def __init__(
        self,
        *,
        relay: str,
        pulse: Pulse,
        ownership: Ownership,
        sender: Sender,
        settlement: Settlement,
        config: RelayConfig,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._pulse = pulse
        self._ownership = ownership
        self._sender = sender
        self._settlement = settlement
        self._clock = clock
        self._announce = announce
        self._interval = seconds(config.heartbeat)
        self._bound = seconds(config.lease) + RECOVERY + seconds(config.poll_interval)
        self._waits: dict[tuple[str, Hashable], _Wait] = {}
        self._stalled: RelayStalled | None = None
        self._rounds: int | None = None
        self._tended = 0
        self._checked = 0.0

    def fetching(self) -> None:
        """The fetch loop begins, or begins anew after the store failed."""
        self._rounds = self._rounds or 0

    def fetched(self) -> None:
        """The fetch loop completed a round."""
        self._rounds = (self._rounds or 0) + 1

    def tended(self) -> None:
        """A round of upkeep was completed: lanes, requests of operators, figures."""
        self._tended += 1

    def begin(self) -> None:
        """A life begins: nothing is known of it."""
        self._waits.clear()
        self._rounds = self._stalled = None
        self._pulse.stalled = ""

    def check(self) -> None:
        """Look for a stall. Called whenever the lease was renewed, whatever the duties of the relay wait for."""
        now = self._clock.monotonic()
        passed, self._checked = now - self._checked, now
        # Long after the last renewal the store was away, or the machine asleep: all begins anew.
        before, self._waits = self._waits if passed <= 2 * self._interval else {}, {}
        found: RelayStalled | None = None
        for stage, subject, mark, reason in self._opportunities():
            wait = before.get((stage, subject))
            wait = _Wait(mark, wait.seconds + passed) if wait is not None and wait.mark == mark else _Wait(mark)
            self._waits[stage, subject] = wait
            if found is None and wait.seconds > self._bound:
                found = RelayStalled(relay=self.relay, stage=stage, reason=reason, seconds=wait.seconds)
        self._tell(found)

    def _tell(self, found: RelayStalled | None) -> None:
        before, self._stalled = self._stalled, found
        self._pulse.stalled = found.reason if found is not None else ""
        if found is not None and (before is None or before.stage != found.stage):
            self._announce(found)
        elif found is None and before is not None:
            self._announce(RelayStallEnded(relay=self.relay, stage=before.stage, seconds=before.seconds))

    def _opportunities(self) -> Iterator[_Opportunity]:
        """What could make progress now, a cause before what follows from it."""
        if self._sender.stopping or not self._ownership.may_send():
            return
        if (oldest := self._settlement.oldest) is not None:
            yield _Opportunity(
                "settle",
                None,
                oldest,
                "the store renews the lease but does not accept the results of sends; see the errors in the relay's "
                "log, and check the database's locks, disk space and permissions",
            )
        if self._rounds is not None and self._ownership.epochs:
            yield _Opportunity(
                "fetch",
                None,
                self._rounds,
                "the store renews the lease but does not answer the fetch for pending events; check the database's "
                "locks and slow queries",
            )
        yield _Opportunity(
            "tend",
            None,
            self._tended,
            "the store renews the lease but does not hand out lanes or carry out requests; see the errors in the "
            "relay's log, and check the database's locks and permissions",
        )
        if (noting := self._sender.noting()) is not None:
            yield _Opportunity(
                "ledger",
                None,
                noting,
                "the store renews the lease but does not write the ledger, and nothing is sent before that; see the "
                "errors in the relay's log, and check the database's locks, disk space and permissions",
            )
        for sends, destination in self._sender.could_send():
            yield _Opportunity(
                "send",
                sends,
                sends.begun,
                f"events for {destination} can be sent and a sender is free, but no send begins; restart the relay and "
                "report its log",
            )
