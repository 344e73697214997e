"""The relay: wake → read → send → settle, until it is told to stop.

One event loop does everything but the heartbeat. Nothing a relay decides depends on the wall clock of its host, and
nothing depends on its memory: whatever it forgets is found again in the store.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from pillarbox.core.clock import Chance, Clock, SystemClock, system_chance
from pillarbox.core.duration import seconds
from pillarbox.core.errors import PillarboxError, StoreUnavailable
from pillarbox.core.identity import uuid7
from pillarbox.core.lane import Lease, RelayCard, Renewal
from pillarbox.core.message import Slot
from pillarbox.core.observations import (
    Announcer,
    LanesReleased,
    LanesTaken,
    LeaseLost,
    Observer,
    Pruned,
    RelayStarted,
    RelayStopped,
    RequestsCarriedOut,
    StopRequested,
    StoreFailed,
)
from pillarbox.core.retry import Exponential, RetryPolicy
from pillarbox.core.store import Store
from pillarbox.core.transport import Address, Transport
from pillarbox.relay import failpoints
from pillarbox.relay.dispatch import Dispatch
from pillarbox.relay.gates import Gates
from pillarbox.relay.hand import Hand
from pillarbox.relay.heartbeat import Heartbeat, HeartbeatThread, Pulse
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.reading import Reader
from pillarbox.relay.routing import Destination, Route, Routing
from pillarbox.relay.settlement import Settlement
from pillarbox.relay.stops import Stops
from pillarbox.relay.suspicion import Suspicion
from pillarbox.relay.tuning import Tuning

SHOWN_AFTER = 1.0
FIRST_PAUSE = 0.005
DROWSY = 0.04
"""After a pause of this length the doorbell is asked for; until then looking is cheaper than being rung."""
UPKEEP_EVERY = 60.0
PRUNED_AT_ONCE = 1000


class Relay:
    """Carries messages from a store to their destinations. Raises ConfigurationError for what cannot work.

    `async with relay:` runs it in the background; `await relay.run()` until `stop()`; `run_until_empty()` until nothing
    can be sent now.
    """

    def __init__(
        self,
        *,
        store: Store,
        transports: Mapping[str, Transport],
        destinations: Mapping[str, Destination | Address] | None = None,
        routes: Sequence[Route] = (),
        retry: RetryPolicy | None = None,
        tuning: Tuning | None = None,
        name: str = "",
        observers: Sequence[Observer] = (),
        clock: Clock | None = None,
        chance: Chance | None = None,
        threaded_heartbeat: bool = True,
        on_stall: Callable[[str], None] | None = None,
    ) -> None:
        """
        observers: told everything that happens; they must neither raise nor block.
        on_stall: called, on the heartbeat's thread, when the event loop was silent for longer than `stall_limit`, after
            the lanes were given away: the loop may never run again. A process of its own had best end itself here.
        """
        self._store = store
        self._transports = dict(transports)
        self._tuning = tuning or Tuning()
        self._name = name
        self._clock = clock or SystemClock()
        self._chance = chance or system_chance()
        self._threaded = threaded_heartbeat
        self._on_stall = on_stall
        self._announce = Announcer(list(observers))
        self._routing = Routing(routes, destinations or {}, self._transports)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.id = uuid7()
        self._hand = Hand()
        self._stops = Stops()
        self._ownership = Ownership(self._clock, lease=seconds(self._tuning.lease), count=store.lanes.count)
        self._gates = Gates(relay=self.id, clock=self._clock, chance=self._chance, announce=self._announce)
        shared = {"relay": self.id, "hand": self._hand, "stops": self._stops, "ownership": self._ownership}
        common: dict[str, Any] = shared | {"announce": self._announce, "clock": self._clock, "chance": self._chance}
        self._settlement = Settlement(store=store, batch=2 * self._tuning.batch_size, **common)
        self._dispatch = Dispatch(
            routing=self._routing,
            gates=self._gates,
            settlement=self._settlement,
            policy=retry or Exponential(),
            tuning=self._tuning,
            **common,
        )
        self._suspicion = Suspicion(window=self._tuning.most_in_hand)
        self._settlement.on_passed = self._suspicion.passed
        self._reader = Reader(
            suspicion=self._suspicion,
            store=store,
            routing=self._routing,
            gates=self._gates,
            settlement=self._settlement,
            tuning=self._tuning,
            **common,
        )
        for place in self._routing.places():
            self._gates.of(place)
        self._pulse = Pulse(relay=self.id)
        self._others: tuple[Mapping[str, str], ...] = ()
        self._next_upkeep = 0.0
        self._settlements = 0
        self._asleep_until = 0.0
        self._stirred = asyncio.Event()
        self.failure: str | None = None
        """Why the relay stopped by itself, if it did."""
        self._dispatch.on_change = self._stir
        self._settlement.on_written = self._after_settlement

    # -- the ways to run ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Drain: read no more, wait for what is in flight, settle, give the lanes back."""
        if not self._stopping.is_set():
            self._announce(StopRequested(relay=self.id))
            self._stopping.set()
            self._stir()

    async def run(self) -> None:
        """Work until `stop()`, or until cancelled; both drain."""
        async with self._working():
            await self._stopping.wait()

    async def run_until_empty(
        self, *, recorded_after: datetime | None = None, recorded_before: datetime | None = None
    ) -> None:
        """Work until nothing can be sent now; what waits for its time, a person or a closed destination stays.

        With a range only what was recorded in it is carried, and a key with an earlier message outside is left alone.
        """
        self._reader.recorded_after, self._reader.recorded_before = recorded_after, recorded_before
        async with self._working():
            while not self._stopping.is_set() and not await self._empty():
                await self._wait_for_a_stir(FIRST_PAUSE)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    # -- one life -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        await self._clock.sleep(seconds(self._tuning.initial_delay))
        await self._join()
        self._announce(RelayStarted(relay=self.id, name=self._name))
        drained = False
        heartbeat = self._start_heartbeat()
        tasks = [asyncio.create_task(work) for work in self._duties()]
        if isinstance(heartbeat, Heartbeat):
            tasks.append(asyncio.create_task(heartbeat.run()))
        try:
            yield
        finally:
            try:
                drained = await self._drain()
            finally:
                self._pulse.ended = True
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._leave()
                self._announce(RelayStopped(relay=self.id, drained=drained))

    def _duties(self) -> list[Coroutine[Any, Any, None]]:
        duties: list[Coroutine[Any, Any, None]] = [
            self._settlement.run(),
            self._patiently(self._read_loop),
            self._patiently(self._tend_loop),
        ]
        if self._tuning.doorbell:
            duties.append(self._patiently(self._listen_loop))
        for transport in self._transports.values():
            duties += [self._dispatch.run(transport) for _ in range(transport.pace.lots)]
        return duties

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it again, after a growing pause, whenever the store is away."""
        pause = 0.1
        while True:
            try:
                await work()
                pause = 0.1
            except StoreUnavailable as error:
                self._announce(StoreFailed(relay=self.id, error=str(error), delay=pause))
                await self._clock.sleep(pause * (0.5 + self._chance.random() / 2))
                pause = min(5.0, pause * 2)

    async def _join(self) -> None:
        card = RelayCard(id=self.id, name=self._name, host=platform.node())
        began = self._clock.monotonic()
        # A lane may still name this relay from before: it must not look owned by a relay that does not know of it.
        await self._store.lanes.leave(self.id)
        await self._store.lanes.join(card, lease=seconds(self._tuning.lease))
        self._pulse.relay = self.id
        self._pulse.thread = threading.get_ident()
        self._pulse.ticked = began
        self._pulse.joined = True
        self._ownership.deadline = began + seconds(self._tuning.lease)

    def _start_heartbeat(self) -> Heartbeat | HeartbeatThread:
        loop = asyncio.get_running_loop()

        def stalled(reason: str) -> None:
            if self._on_stall is not None:
                self._on_stall(reason)
            _call(loop, self._stalled, reason)

        def make(store: Store) -> Heartbeat:
            return Heartbeat(
                store=store,
                pulse=self._pulse,
                clock=self._clock,
                lease=seconds(self._tuning.lease),
                interval=seconds(self._tuning.heartbeat),
                stall_limit=seconds(self._tuning.stall_limit),
                on_renewed=self._renewed,
                on_lost=lambda reason: _call(loop, self._lease_lost, reason),
                on_stalled=stalled,
            )

        if not self._threaded:
            return make(self._store)
        thread = HeartbeatThread(make, self._store)
        thread.start()
        return thread

    def _renewed(self, deadline: float, renewal: Renewal) -> None:
        self._ownership.deadline = deadline
        self._ownership.relays = renewal.relays
        self._others = renewal.others

    def _lease_lost(self, reason: str) -> None:
        """Everything is lost; the next round of tending joins again."""
        self._announce(LeaseLost(relay=self.id, reason=reason))
        self._hand.drop_lanes(self._ownership.lose_all())
        self._ownership.deadline = 0.0

    def _stalled(self, reason: str) -> None:
        self._lease_lost(reason)
        self.failure = reason
        self._stopping.set()
        self._stir()

    # -- duties ---------------------------------------------------------------------------------------------------

    async def _read_loop(self) -> None:
        pause, longest = FIRST_PAUSE, seconds(self._tuning.poll_interval)
        while True:
            if self._stopping.is_set():
                return await self._forever()
            found = await self._reader.look_around()
            if found:
                pause = FIRST_PAUSE
                self._dispatch.stir()
                await self._wake_up()
            elif not await self._fall_asleep(pause):
                await self._wait_for_a_stir(min(pause, longest) if self._tuning.adaptive else longest)
                pause = min(longest, pause * 2)

    async def _fall_asleep(self, pause: float) -> bool:
        """Ask to be woken, once nothing has come for a while; True: look once more before sleeping."""
        now = self._clock.monotonic()
        if not self._tuning.doorbell or pause < DROWSY or now < self._asleep_until:
            return False
        sleep = 2 * max(DROWSY, seconds(self._tuning.poll_interval))
        await self._store.wakeup.doze(self.id, sleep)
        self._asleep_until = now + sleep / 2
        return True

    async def _wake_up(self) -> None:
        if self._asleep_until:
            self._asleep_until = 0.0
            await self._store.wakeup.rouse(self.id)

    async def _listen_loop(self) -> None:
        while True:
            if await self._store.wakeup.wait(seconds(self._tuning.poll_interval)):
                self._stir()

    async def _tend_loop(self) -> None:
        while True:
            now = self._clock.monotonic()
            self._pulse.ticked = now
            self._pulse.in_hand = list(self._hand.held_longer_than(SHOWN_AFTER, now))
            self._pulse.breakers = self._gates.states()
            if not self._stopping.is_set():
                if not self._pulse.joined:
                    await self._join()
                await self._tend_lanes()
                if self._ownership.epochs and (done := await self._store.writes.carry_out(self._ownership.epochs)):
                    self._announce(RequestsCarriedOut(relay=self.id, count=done))
                    self._reader.due_within(0)
                    self._stir()
                await self._keep_house(now)
            await self._show_gates()
            self._gates.steer(await self._store.destinations.steering(), relays=self._ownership.relays)
            await self._clock.sleep(seconds(self._tuning.heartbeat) / 2)

    async def _tend_lanes(self) -> None:
        shut_out = self._gates.shut_out(self._others)
        if shut_out:
            self._ownership.leaving.update(self._ownership.epochs)
        self._ownership.give_up_excess()
        busy = self._hand.lanes()
        self._dispatch.let_go(self._hand.unsent(lanes=self._ownership.leaving))
        if free := self._ownership.leaving - busy:
            await self._release(free)
        if not shut_out and (missing := self._ownership.missing()) and self._ownership.alive():
            leases = await self._take(missing)
            if leases:
                self._ownership.took(leases)
                self._suspicion.took(leases)
                crashed = tuple(lease.lane for lease in leases if lease.crashes)
                self._announce(LanesTaken(relay=self.id, lanes=tuple(lease.lane for lease in leases), crashed=crashed))
                self._reader.look_for_headless()
                self._stir()

    async def _keep_house(self, now: float) -> None:
        """Retention, in small bites: the owner of the first lane does it for all."""
        if now < self._next_upkeep or not self._ownership.owns(0):
            return
        kept = {
            name: None if (at := getattr(self._tuning, name)) is None else seconds(at) for name in ("history", "dead")
        }
        await self._store.upkeep.prepare()
        pruned = await self._store.upkeep.prune(**kept, most=PRUNED_AT_ONCE)
        if pruned:
            self._announce(Pruned(relay=self.id, count=pruned))
        # A full bite: there is more.
        self._next_upkeep = now + (1.0 if pruned >= PRUNED_AT_ONCE else UPKEEP_EVERY)

    async def _take(self, most: int) -> list[Lease]:
        try:
            return await self._store.lanes.take(self.id, most=most)
        except StoreUnavailable:
            # Lanes may be ours without our knowing: begin anew, or nobody would ever work them.
            self._pulse.joined = False
            self._lease_lost("the answer to a take was lost")
            raise

    async def _release(self, lanes: set[int]) -> None:
        epochs = {lane: epoch for lane, epoch in self._ownership.epochs.items() if lane in lanes}
        failpoints.hit("before-release")
        # Forgotten only once it is known: a lane that the store gives to nobody else must not be orphaned.
        await self._store.lanes.release(self.id, epochs)
        self._ownership.lose(lanes)
        self._announce(LanesReleased(relay=self.id, lanes=tuple(sorted(lanes))))

    async def _show_gates(self) -> None:
        while self._gates.changed:
            destination, (error, next_try) = self._gates.changed.popitem()
            await self._store.destinations.report(
                destination, error=error or None, next_try=next_try if error else None
            )

    # -- stirring and resting -------------------------------------------------------------------------------------

    def _stir(self) -> None:
        self._stirred.set()
        self._dispatch.stir()

    async def _wait_for_a_stir(self, longest: float) -> None:
        self._stirred.clear()
        try:
            async with asyncio.timeout(longest):
                await self._stirred.wait()
        except TimeoutError:
            return

    async def _forever(self) -> None:
        await asyncio.Event().wait()

    def _after_settlement(self, slots: list[Slot]) -> None:
        self._settlements += 1
        self._reader.read_on(slots)
        self._reader.due_within(0)
        self._stir()

    def _at_rest(self) -> bool:
        return len(self._hand) == 0 and self._settlement.idle and self._dispatch.idle

    async def _empty(self) -> bool:
        """Nothing in hand, nothing to settle, and a thorough look finds nothing that could go."""
        if not self._at_rest() or not self._ownership.epochs:
            return False
        before = self._settlements
        try:
            found = await self._reader.look_around(thoroughly=True)
        except StoreUnavailable:
            return False
        if found:
            self._dispatch.stir()
        # What was settled during the look may be due by now.
        return found == 0 and self._at_rest() and self._settlements == before

    async def _drain(self) -> bool:
        self._stopping.set()
        self._dispatch.stopping = True
        self._dispatch.let_go(self._hand.unsent())
        failpoints.hit("during-drain")
        end = self._clock.monotonic() + seconds(self._tuning.drain_timeout)
        while self._clock.monotonic() < end and not (self._dispatch.idle and self._settlement.idle):
            await self._wait_for_a_stir(0.05)
        return self._dispatch.idle and self._settlement.idle

    async def _leave(self) -> None:
        self._ownership.lose_all()
        try:
            await self._store.lanes.leave(self.id)
        except PillarboxError:
            # Its lease ends by itself.
            return


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[str], None], reason: str) -> None:
    loop.call_soon_threadsafe(callback, reason)
