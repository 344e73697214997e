"""The relay: wake → read → send → settle, until it is told to stop.

One event loop does everything but the heartbeat. Nothing a relay decides depends on the wall clock of its host, and
nothing depends on its memory: whatever it forgets is found again in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Self

from pillarbox import failpoints
from pillarbox.core.clock import Chance, Clock, SystemClock, seconds, system_chance
from pillarbox.core.errors import ConfigurationError, StoreUnavailableError
from pillarbox.core.event import uuid7
from pillarbox.core.lane import Renewal
from pillarbox.core.message import Slot
from pillarbox.core.observations import (
    Announcer,
    Observer,
    RelayDisabled,
    RelayStarted,
    RelayStopped,
    StopRequested,
)
from pillarbox.core.retry import Backoff, ExponentialBackoff, RetryPolicy
from pillarbox.core.store import Store
from pillarbox.core.transport import Address, Transport
from pillarbox.relay.assembly import assemble
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.destinations import Connections
from pillarbox.relay.heartbeat import Heartbeat, HeartbeatThread
from pillarbox.relay.idle import FIRST_PAUSE
from pillarbox.relay.routing import Destination, Route, Routing
from pillarbox.relay.settle import Freed
from pillarbox.relay.supervisor import Crew, Duty

SHORT = 0.05


class Relay:
    """Carries messages from a store to their destinations. Raises ConfigurationError for what cannot work.

    `async with relay:` runs it in the background; `await relay.run()` until `stop()`; `run_once()` for one round;
    `run_until_empty()` until nothing can be sent now. All of them drain before they end, and raise RelayFailedError if
    the relay could not go on.
    """

    def __init__(
        self,
        *,
        store: Store,
        transports: Mapping[str, Transport],
        destinations: Mapping[str, Destination | Address] | None = None,
        routes: Sequence[Route] = (),
        retry: RetryPolicy | None = None,
        config: RelayConfig | None = None,
        name: str = "",
        observers: Sequence[Observer] = (),
        clock: Clock | None = None,
        chance: Chance | None = None,
        threaded_heartbeat: bool = True,
        fail_fast: bool = False,
        on_stall: Callable[[str], None] | None = None,
    ) -> None:
        """
        fail_fast: raise StoreUnavailableError or UnavailableError at the start if the store or a transport cannot be
        reached.
            By default the relay waits for them and announces it (`StoreFailed`, `TransportFailed`).
        observers: told everything that happens; they must neither raise nor block.
        on_stall: called, on the heartbeat's thread, when the event loop was silent for longer than `stall_limit`, after
            the lanes were given away: the loop may never run again. A process of its own had best end itself here.
        """
        self.id = uuid7()
        self._opened = AsyncExitStack()
        self._store = store
        self._transports = dict(transports)
        self._config = config or RelayConfig()
        self._name = name
        self._clock = clock or SystemClock()
        self._chance = chance = chance or system_chance()
        self._store_error = ""
        self._threaded = threaded_heartbeat
        self._fail_fast = fail_fast
        self._on_stall = on_stall
        self._announce = Announcer(list(observers))
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._crew = Crew(relay=self.id, clock=self._clock, chance=chance, announce=self._announce)
        self._crew.on_failed = self._stopped_by_itself
        self._settlements = 0
        self._lives = False
        parts = assemble(
            relay=self.id,
            name=name,
            store=store,
            routing=Routing(routes, destinations or {}, self._transports, most=self._config.max_destinations),
            policy=retry or ExponentialBackoff(),
            config=self._config,
            clock=self._clock,
            chance=chance,
            announce=self._announce,
        )
        self._in_flight, self._ownership, self._pulse = parts.in_flight, parts.ownership, parts.pulse
        self._idle, self._fetcher, self._sender = parts.idle, parts.fetcher, parts.sender
        self._decider = parts.decider
        self._settlement, self._tending, self._progress = parts.settlement, parts.tending, parts.progress
        self._settlement.on_written = self._after_settlement
        self._connections = Connections(
            self._transports,
            relay=self.id,
            gates=parts.gates,
            clock=self._clock,
            chance=chance,
            announce=self._announce,
        )
        self._sender.on_idle, self._decider.on_let_go = self._idle.notice, self._after_let_go
        self._tending.on_change = self._connections.on_change = self._stir
        self._tending.on_drain = self.stop
        self._tending.on_round = self._progress.tended

    @classmethod
    def from_settings(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        observers: Sequence[Observer] = (),
    ) -> Relay:
        """The relay of a settings file and of the environment variables, with its store and its transports.

        path: the file; None: the one that PILLARBOX_CONFIG names, else `pillarbox.toml` in the current folder if there
            is one.
        environment: variables instead of those of the process.

        Connects to nothing before it runs. `aclose()`, or the end of `async with`, closes store and transports.
        Raises ConfigurationError, which names every wrong setting as it is written.
        """
        from pillarbox.ops import from_settings

        relay, opened = from_settings.relay(path, environment=environment, observers=observers)
        relay._opened = opened
        return relay

    async def aclose(self) -> None:
        """Close the store and the transports that `from_settings` opened; nothing else."""
        await self._opened.aclose()

    # -- the ways to run ------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Drain: read no more, wait for what is in flight, settle, give the lanes back."""
        if not self._stopping.is_set():
            self._announce(StopRequested(relay=self.id))
            self._stopping.set()
            self._stir()

    async def run(self) -> None:
        """Work until `stop()`, or until cancelled; both drain."""
        if self._switched_on():
            async with self._working():
                await self._stopping.wait()

    async def run_once(self, *, recorded_after: datetime | None = None, recorded_before: datetime | None = None) -> int:
        """Read once, send and settle what that brought; returns how many messages were carried or given up on.

        Raises StoreUnavailableError where `run` would wait. For the range see `run_until_empty`.
        """
        if not self._switched_on():
            return 0
        self._fetcher.recorded_after, self._fetcher.recorded_before = recorded_after, recorded_before
        carried = 0
        async with self._working(reading=False, waiting=False):
            while not self._stopping.is_set() and await self._some_lane_lies_idle():
                await self._idle.until_change(SHORT)
            # What is only moved, such as a message that is split, comes with the next look.
            while not self._stopping.is_set() and not carried and await self._fetcher.look_around(thoroughly=True):
                carried = len(self._in_flight)
            self._sender.stir()
            while not self._stopping.is_set() and not self._at_rest():
                await self._idle.until_change(SHORT)
        return carried

    async def run_until_empty(
        self, *, recorded_after: datetime | None = None, recorded_before: datetime | None = None
    ) -> int:
        """Work until nothing can be sent now; what waits for its time, a person, a closed destination or another relay
        stays. Returns how many that are; beyond some thousands, about how many.

        Raises StoreUnavailableError if the store cannot be reached at the start; a later outage is waited for.

        With a range only what was recorded in it is carried, and a key with an earlier message outside is left alone.
        """
        if self._switched_on():
            self._fetcher.recorded_after, self._fetcher.recorded_before = recorded_after, recorded_before
            async with self._working(waiting=False):
                while not self._stopping.is_set() and not await self._empty():
                    await self._idle.until_change(FIRST_PAUSE)
        return (await self._store.statistics.backlog()).messages

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        async with self._opened:
            if self._task is not None:
                await self._task

    def _switched_on(self) -> bool:
        if not self._config.enabled:
            self._announce(RelayDisabled(relay=self.id))
        return self._config.enabled

    @property
    def silence(self) -> float | None:
        """Seconds since its loop last went round, which it does twice per heartbeat; None while it does not run."""
        return self._clock.monotonic() - self._pulse.ticked if self._pulse.ticked else None

    @property
    def stalled(self) -> str:
        """Why it makes no progress although it could, and what to do; "" while it makes progress or cannot."""
        return self._pulse.stalled

    @property
    def waits_for(self) -> Mapping[str, str]:
        """What the relay has not reached since it began: "store" or the name of a transport → why."""
        never = {name: self._connections.errors.get(name, "connecting") for name in self._connections.waiting}
        return {"store": self._store_error} | never if self._store_error else never

    # -- one life -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _working(self, *, reading: bool = True, waiting: bool = True) -> AsyncIterator[None]:
        if self._lives:
            raise ConfigurationError("this relay runs already; for several at once make several")
        self._lives = True
        try:
            await self._clock.sleep(seconds(self._config.initial_delay))
            if await self._join(waiting=waiting and not self._fail_fast):
                async with self._one_life(reading=reading):
                    yield
            else:
                yield
        finally:
            self._lives = False
            self._pulse.ticked = 0.0
            # Ready for another life: `run_once` and `run_until_empty` may be called again and again.
            self._stopping.clear()
            self._tending.leaving = self._sender.stopping = self._fetcher.stopping = False

    @asynccontextmanager
    async def _one_life(self, *, reading: bool) -> AsyncIterator[None]:
        self._announce(RelayStarted(relay=self.id, name=self._name))
        self._progress.begin()
        heartbeat = self._heartbeat()
        self._crew.begin(self._duties(reading=reading))
        try:
            yield
        finally:
            # In a task of its own: in a cancelled one, Python 3.11.2 takes every timeout for another cancellation.
            await asyncio.create_task(self._end_of_life(heartbeat))
        if self._crew.failure is not None:
            raise self._crew.failure

    async def _join(self, *, waiting: bool) -> bool:
        """Begin to live once the store can be reached and, with `fail_fast`, every transport. Returns False if
        the relay is to stop before that. Raises SchemaError, and unless `waiting`, StoreUnavailableError and
        UnavailableError."""
        backoff = Backoff(self._chance)
        while not self._stopping.is_set():
            try:
                await self._store.schema.check()
                if self._fail_fast:
                    for name in self._transports:
                        await self._connections.check(name)
                await self._tending.join()
            except StoreUnavailableError as error:
                if not waiting:
                    raise
                self._store_error = str(error)
                delay = self._crew.store_failed(error, backoff)
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await self._stopping.wait()
            else:
                self._store_error = ""
                self._crew.store_answered()
                return True
        return False

    async def _end_of_life(self, heartbeat: Heartbeat | HeartbeatThread) -> None:
        drained = False
        try:
            drained = await self._drain()
        finally:
            # No beat may come after the relay has left: it would find its lease gone.
            await heartbeat.end()
            await self._crew.end()
            await self._tending.leave()
            self._settlement.abandon()
            self._announce(RelayStopped(relay=self.id, drained=drained))

    def _duties(self, *, reading: bool) -> list[Duty]:
        duties: list[Duty] = [self._settlement.run, partial(self._crew.patiently, self._tending.run)]
        if reading:
            duties.append(partial(self._crew.patiently, self._read))
            duties += [partial(self._connections.watch, name) for name in self._transports]
            if self._config.wakeup == "notify":
                duties.append(partial(self._crew.patiently, self._idle.listen))
                duties.append(partial(self._crew.patiently, self._idle.tell_producers))
        duties += [partial(self._sender.run, transport) for transport in self._transports.values()]
        return duties

    def _heartbeat(self) -> Heartbeat | HeartbeatThread:
        loop = asyncio.get_running_loop()

        def here(callback: Callable[..., None], *arguments: object) -> None:
            # The loop may be gone by then, and with it everybody who could care.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(callback, *arguments)

        def stalled(reason: str) -> None:
            if self._on_stall is not None:
                self._on_stall(reason)
            here(self._tending.lease_lost, reason)
            here(self._crew.fail, reason)

        def renewed(deadline: float, renewal: Renewal) -> None:
            # What is in flight waits while the lease is over: nothing else would tell its senders to go on.
            suspended = not self._ownership.may_send()
            self._tending.renewed(deadline, renewal)
            here(self._store_answered)
            if suspended:
                here(self._stir)

        def make(store: Store) -> Heartbeat:
            return Heartbeat(
                store=store,
                pulse=self._pulse,
                clock=self._clock,
                config=self._config,
                on_renewed=renewed,
                on_lost=lambda reason: here(self._tending.lease_lost, reason),
                on_stalled=stalled,
                on_failed=lambda error: here(self._crew.fail, f"its heartbeat failed: {error!r}", error),
                on_cut_off=self._tending.cut_off,
                on_expired=lambda: here(self._tending.hurry),
                chance=self._chance,
            )

        heartbeat = HeartbeatThread(make, self._store) if self._threaded else make(self._store)
        heartbeat.begin()
        return heartbeat

    def _store_answered(self) -> None:
        self._crew.store_answered()
        self._progress.check()

    def _stopped_by_itself(self) -> None:
        self._stopping.set()
        self._stir()

    async def _drain(self) -> bool:
        self._stopping.set()
        self._tending.leaving = True
        self._sender.stopping = self._fetcher.stopping = True
        self._decider.let_go(self._in_flight.unsent())
        failpoints.hit("before-drain")
        end = self._clock.monotonic() + seconds(self._config.drain_timeout)
        while self._clock.monotonic() < end and not self._drained() and not self._settlement.ended:
            await self._idle.until_change(SHORT)
        failpoints.hit("after-drain")
        return self._drained()

    def _drained(self) -> bool:
        return self._fetcher.idle and self._sender.idle and self._settlement.idle

    # -- reading --------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        self._progress.fetching()
        while not self._stopping.is_set():
            if (pause := self._fetcher.pause()) > 0:
                await self._idle.until_change(pause)
                continue
            self._idle.begin_fetch()
            try:
                found = await self._fetcher.look_around()
            except StoreUnavailableError:
                # What it had put in flight before a write of its own failed can go all the same.
                self._sender.begin()
                raise
            self._progress.fetched()
            if found:
                self._sender.begin()
            await self._idle.after_fetch(found, took_all=self._fetcher.took_all)
        await asyncio.Event().wait()

    def _stir(self) -> None:
        self._idle.wake()
        self._sender.stir()

    def _after_settlement(self, freed: Freed) -> None:
        self._settlements += 1
        self._fetcher.read_on(freed.slots)
        if freed.due:
            self._fetcher.due_within(0)
        for delay in freed.retries:
            self._fetcher.retry_within(delay)
        if freed.nothing and self._fetcher.took_all:
            self._idle.notice()
        else:
            self._idle.wake()
        self._sender.stir()

    def _after_let_go(self, slots: list[Slot]) -> None:
        self._fetcher.read_on(slots)
        self._idle.wake()

    def _at_rest(self) -> bool:
        return len(self._in_flight) == 0 and self._sender.idle and self._settlement.idle

    async def _some_lane_lies_idle(self) -> bool:
        """Whether this relay owns nothing yet, or a lane has no owner that lives: somebody ended without leaving, and
        what he had is to be taken over first."""
        if not self._ownership.epochs:
            return True
        return (await self._store.statistics.backlog()).unowned

    async def _empty(self) -> bool:
        """Nothing in flight, nothing to settle, and a thorough look finds nothing that could go."""
        if not self._at_rest():
            return False
        before = self._settlements
        try:
            if await self._some_lane_lies_idle():
                return False
            found = await self._fetcher.look_around(thoroughly=True)
        except StoreUnavailableError:
            self._sender.stir()
            return False
        if found:
            self._sender.stir()
        # What was settled during the look may be due by now.
        return found == 0 and self._at_rest() and self._settlements == before
