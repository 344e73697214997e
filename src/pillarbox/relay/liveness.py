"""The heartbeat: renews the lease on a loop of its own, so that a blocked event loop does not lose the lanes.

It renews only while the relay's loop has ticked within `stall_limit`: the lanes of a relay whose loop hangs go to
others. Time during which the heartbeat did not run either does not count: a process that was suspended has the rest of
the limit to finish a statement on a dead connection. The deadline it sets counts from before the renewal was sent.

With each renewal the stall detector checks whether the relay, which is alive, also makes progress.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pillarbox.core.clock import seconds
from pillarbox.core.errors import PillarboxError
from pillarbox.core.lane import Renewal
from pillarbox.core.observations import RelayStalled, RelayStallEnded
from pillarbox.core.retry import Backoff
from pillarbox.core.store import Store

if TYPE_CHECKING:
    from pillarbox.relay.coordinator import Coordinator
    from pillarbox.relay.fetch_loop import FetchLoop
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.send import Sender
    from pillarbox.relay.settle import Settlement

RECONNECTS_WITHIN = 0.3
"""Seconds that a relay whose session ended has to begin another one before its lease is ended."""
END_TIMEOUT = 5.0
"""Seconds that the heartbeat may take to end before the relay ends without it."""


class HeartbeatListener(Protocol):
    """What acts on the findings of a heartbeat. Called on the heartbeat's thread."""

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        """The lease was renewed until `deadline`."""

    def lease_lost(self, reason: str) -> None:
        """The lease ended before it was renewed."""

    def session_lost(self) -> None:
        """The session ended: others may take the lanes before the lease ends."""

    def lanes_available(self) -> None:
        """The lease of a crashed relay was ended: its lanes can be taken."""

    def loop_stalled(self, reason: str) -> None:
        """The relay's loop hangs, and its lanes were released."""

    def heartbeat_failed(self, error: Exception) -> None:
        """The heartbeat ended with a bug of its own."""


class Heartbeat:
    """Renews the lease until it is ended, or finds the relay's loop hanging."""

    def __init__(self, context: RelayContext, listener: HeartbeatListener, store: Store) -> None:
        self._store = store
        self._listener = listener
        self._state = context.heartbeat
        self._clock = context.clock
        self._lease = seconds(context.config.lease)
        self._interval = seconds(context.config.heartbeat_interval)
        self._stall_limit = seconds(context.config.stall_limit)
        self._backoff = Backoff(context.rng, max_pause=self._interval)
        self._relays = 1
        self._ticked = self._checked = self._silent = 0.0
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Renew on the loop that runs now."""
        self._task = asyncio.create_task(self.run())

    async def end(self) -> None:
        """Renew no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def run(self) -> None:
        try:
            await self._beat_on()
        except Exception as error:
            # Without a heartbeat the lease would run out and the relay would idle.
            self._listener.heartbeat_failed(error)

    async def _beat_on(self) -> None:
        while True:
            began = self._clock.monotonic()
            if (silent := self._measure_silence(began)) > self._stall_limit:
                await self._release_lanes(silent)
                return
            pause = self._interval
            if self._state.joined and not await self._beat(began):
                pause = self._backoff.next()
            await self._rest(max(0.0, pause - (self._clock.monotonic() - began)))

    def _measure_silence(self, now: float) -> float:
        """Return for how long the relay's loop has not ticked while this one ran."""
        # Between two checks this loop runs for an interval. Anything beyond that may be a suspension of the process.
        passed, self._checked = min(now - self._checked, self._interval), now
        silent = self._silent + passed if self._state.ticked == self._ticked else 0.0
        self._ticked, self._silent = self._state.ticked, silent
        return silent

    async def _rest(self, length: float) -> None:
        """Pause until the next renewal; half-way, search for relays that crashed."""
        end = self._clock.monotonic() + length
        while (left := end - self._clock.monotonic()) > 0:
            if await self._session_ends_within(min(left, self._interval / 2)):
                self._listener.session_lost()
                await self._clock.sleep(self._backoff.next())
                return
            if self._state.joined and self._relays > 1:
                await self._expire_crashed()

    async def _session_ends_within(self, length: float) -> bool:
        """Pause; True as soon as the session ended: a new one begins at once, and nothing is sent until then."""
        pause = asyncio.create_task(self._clock.sleep(length))
        session_ended = asyncio.create_task(self._store.lanes.session_ended())
        try:
            await asyncio.wait([pause, session_ended], return_when=asyncio.FIRST_COMPLETED)
            return session_ended.done() and not pause.done()
        finally:
            pause.cancel()
            session_ended.cancel()

    async def _expire_crashed(self) -> None:
        lanes = self._store.lanes
        with suppress(PillarboxError):
            if sessions := await lanes.ended(self._state.relay):
                # A relay that is alive reconnects at once.
                await self._clock.sleep(RECONNECTS_WITHIN)
                if await lanes.expire(sessions):
                    # Learn how many relays are left before their lanes are taken.
                    await self._beat(self._clock.monotonic())
                    self._listener.lanes_available()

    async def _release_lanes(self, silent: float) -> None:
        """The relay's loop hangs: release its lanes in its name, and show where it hangs."""
        self._state.joined = False
        with suppress(PillarboxError):
            await self._store.lanes.release(self._state.relay)
        self._listener.loop_stalled(
            f"the event loop has been silent for {silent:.0f} s; it hangs at\n{self._state.stack()}"
        )

    async def _beat(self, began: float) -> bool:
        """Renew the lease; False: the store cannot be reached."""
        state = self._state
        try:
            renewal = await self._store.lanes.renew(
                state.relay,
                lease=self._lease,
                in_flight=state.in_flight,
                breakers=state.breakers or {},
                stalled=state.stalled,
            )
        except PillarboxError:
            # The store is unavailable: the deadline passes by itself if that lasts.
            return False
        self._backoff.reset()
        if renewal is None:
            state.joined = False
            self._listener.lease_lost("the lease ended before it was renewed")
            return True
        self._relays = renewal.relays
        self._listener.renewed(began + self._lease, renewal)
        return True


class HeartbeatThread:
    """A heartbeat on a thread and a loop of its own, with a store of its own."""

    def __init__(self, make: Callable[[Store], Heartbeat], store: Store, failed: Callable[[Exception], None]) -> None:
        """`failed`: called on the thread if it cannot begin, or ends over an error."""
        self._make = make
        self._store = store
        self._failed = failed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ending = False
        self._end_requested = asyncio.Event()
        self._ended = asyncio.Event()
        self._relays_loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Renew from now on."""
        try:
            threading.Thread(target=self._run, name="pillarbox-heartbeat", daemon=True).start()
        except RuntimeError as error:
            self._failed(error)
            self._ended.set()

    async def end(self) -> None:
        """Renew no more; returns once the thread has closed its connection, or hangs."""
        self._is_ending = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the thread has ended
                self._loop.call_soon_threadsafe(self._end_requested.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT):
                await self._ended.wait()

    def _run(self) -> None:
        try:
            with closing(asyncio.new_event_loop()) as self._loop:
                if not self._is_ending:
                    self._loop.run_until_complete(self._beat())
        except Exception as error:
            if not self._is_ending:  # nothing renews the lease any more, and the relay would idle
                self._failed(error)
        finally:
            with suppress(RuntimeError):  # the relay's loop has ended
                self._relays_loop.call_soon_threadsafe(self._ended.set)

    async def _beat(self) -> None:
        store = self._store.clone()
        requested = asyncio.create_task(self._end_requested.wait())
        beating = asyncio.create_task(self._make(store).run())
        try:
            await asyncio.wait([requested, beating], return_when=asyncio.FIRST_COMPLETED)
        finally:
            requested.cancel()
            beating.cancel()
            await asyncio.gather(requested, beating, return_exceptions=True)
            await store.aclose()


RECOVERY = 15.0
"""Seconds beyond the lease within which every deliverable event leaves after a fault ended."""


NOT_SETTLED = (
    "the store renews the lease but does not accept the results of sends; see the errors in the relay's log, and check "
    "the database's locks, disk space and permissions"
)
NOT_FETCHED = (
    "the store renews the lease but does not answer the fetch for pending events; check the database's locks and slow "
    "queries"
)
NOT_COORDINATED = (
    "the store renews the lease but does not hand out lanes or execute requests; see the errors in the relay's log, "
    "and check the database's locks and permissions"
)
LEDGER_NOT_WRITTEN = (
    "the store renews the lease but does not write the ledger, and nothing is sent before that; see the errors in the "
    "relay's log, and check the database's locks, disk space and permissions"
)
NOT_SENT = "events for {} can be sent and a sender is free, but no send begins; restart the relay and report its log"


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


class StallDetector:
    """Detects that a relay which is alive could take lanes, fetch, send or settle, but does not.

    A stage counts time only while it could make progress and makes none. A pause, a rate limit, an open breaker,
    handlers that occupy every sender, a store that does not renew the lease and an empty outbox all reset it, so that
    none of them raises an alarm. After a gap between two renewals every stage starts over.
    """

    def __init__(
        self,
        context: RelayContext,
        coordinator: Coordinator,
        fetch_loop: FetchLoop,
        sender: Sender,
        settlement: Settlement,
    ) -> None:
        config = context.config
        self._context = context
        self._coordinator = coordinator
        self._fetch_loop = fetch_loop
        self._sender = sender
        self._settlement = settlement
        self._interval = seconds(config.heartbeat_interval)
        self._limit = seconds(config.lease) + RECOVERY + seconds(config.poll_interval)
        self._waits: dict[tuple[str, Hashable], _Wait] = {}
        self._stalled: RelayStalled | None = None
        self._checked = 0.0

    def begin(self) -> None:
        """The relay starts: nothing is known of its stages."""
        self._waits.clear()
        self._stalled = None
        self._fetch_loop.rounds = None
        self._context.heartbeat.stalled = ""

    def check(self) -> None:
        """Search for a stall. Called whenever the lease was renewed, whatever the children of the relay wait for."""
        now = self._context.clock.monotonic()
        passed, self._checked = now - self._checked, now
        # Long after the last renewal the store was unavailable or the machine asleep: start over.
        before, self._waits = self._waits if passed <= 2 * self._interval else {}, {}
        found: RelayStalled | None = None
        for stage, subject, mark, reason in self._opportunities():
            wait = before.get((stage, subject))
            wait = _Wait(mark, wait.seconds + passed) if wait is not None and wait.mark == mark else _Wait(mark)
            self._waits[stage, subject] = wait
            if found is None and wait.seconds > self._limit:
                found = RelayStalled(relay=self._context.relay, stage=stage, reason=reason, seconds=wait.seconds)
        self._report(found)

    def _report(self, found: RelayStalled | None) -> None:
        before, self._stalled = self._stalled, found
        self._context.heartbeat.stalled = found.reason if found is not None else ""
        if found is not None and (before is None or before.stage != found.stage):
            self._context.announce(found)
        elif found is None and before is not None:
            self._context.announce(
                RelayStallEnded(relay=self._context.relay, stage=before.stage, seconds=before.seconds)
            )

    def _opportunities(self) -> Iterator[_Opportunity]:
        """What could make progress now, a cause before what follows from it."""
        context, ledger = self._context, self._sender.ledger
        if context.lifecycle.draining or not context.ownership.may_send():
            return
        if (oldest := self._settlement.oldest) is not None:
            yield _Opportunity("settle", None, oldest, NOT_SETTLED)
        if self._fetch_loop.rounds is not None and context.ownership.epochs:
            yield _Opportunity("fetch", None, self._fetch_loop.rounds, NOT_FETCHED)
        yield _Opportunity("coordinate", None, self._coordinator.rounds, NOT_COORDINATED)
        if ledger is not None and (writes := ledger.writes()) is not None:
            yield _Opportunity("ledger", None, writes, LEDGER_NOT_WRITTEN)
        for sends, destination in self._sender.could_send():
            yield _Opportunity("send", sends, sends.begun, NOT_SENT.format(destination))
