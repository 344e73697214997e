"""The supervisor of one relay: its lifecycle, and its child tasks.

The children start and end together. The first one that fails drains the relay and ends the others, with its reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pillarbox import failpoints
from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError, RelayFailedError, StoreUnavailableError
from pillarbox.core.lane import Renewal
from pillarbox.core.observations import (
    Announcer,
    RelayStarted,
    RelayStopped,
    StopRequested,
    StoreFailed,
    StoreRestored,
)
from pillarbox.core.retry import MAX_RECONNECT_PAUSE, Backoff
from pillarbox.relay.liveness import Heartbeat, HeartbeatThread

if TYPE_CHECKING:
    from pillarbox.relay.fetch_loop import Wakeups
    from pillarbox.relay.relay import RelayContext, RelayParts

CHECK_EVERY = 0.05
"""Seconds between two checks of whether a drain is complete, where nothing wakes it."""

_NO_MEMORY = "the process has no memory left; give it more, or lower max_in_flight_bytes"
Child = Callable[[], Coroutine[Any, Any, None]]


class Phase(Enum):
    """Where a relay is in its life.

    stopped ── begin ──▶ starting ── the store answers ──▶ running ── stop, or a failure ──▶ draining ──▶ stopped
    stopped ── stop ───▶ cancelled: the next run ends at once
    """

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    CANCELLED = "cancelled"


class Lifecycle:
    """The one state of a relay that its parts ask whether to begin anything."""

    def __init__(self, *, relay: str, announce: Announcer, wakeups: Wakeups) -> None:
        self._relay = relay
        self._announce = announce
        self._wakeups = wakeups
        self._ended = asyncio.Event()
        self.phase = Phase.STOPPED
        self.draining = False
        """Whether the phase is one in which nothing begins. An attribute: senders read it for every batch."""

    def begin(self) -> None:
        """Start. Raises ConfigurationError for a relay that is already running."""
        if self.phase not in (Phase.STOPPED, Phase.CANCELLED):
            raise ConfigurationError("this relay is already running; create one Relay per concurrent run")
        self._enter(Phase.STARTING if self.phase is Phase.STOPPED else Phase.DRAINING)

    def run(self) -> None:
        """The store answered: work, unless the relay was stopped meanwhile."""
        if self.phase is Phase.STARTING:
            self._enter(Phase.RUNNING)

    def stop(self) -> None:
        """Drain because an operator or the application asked for it."""
        if not self.draining:
            self._announce(StopRequested(relay=self._relay))
            self.drain()

    def drain(self) -> None:
        """Begin nothing any more: fetch no more, wait for what is in flight, settle, release the lanes."""
        self._enter(Phase.CANCELLED if self.phase in (Phase.STOPPED, Phase.CANCELLED) else Phase.DRAINING)
        self._ended.set()
        self._wakeups.all()

    def end(self) -> None:
        """Stopped: the relay may run again."""
        self._ended.clear()
        self._enter(Phase.STOPPED)

    async def until_draining(self) -> None:
        await self._ended.wait()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.draining = phase in (Phase.DRAINING, Phase.CANCELLED)


class Supervisor:
    """Runs the children of a relay, and retries whatever the store interrupts."""

    def __init__(
        self,
        context: RelayContext,
        parts: RelayParts,
        *,
        fail_fast: bool = False,
        threaded_heartbeat: bool = True,
        on_stall: Callable[[str], None] | None = None,
    ) -> None:
        self._context = context
        self._parts = parts
        self._fail_fast = fail_fast
        self._threaded = threaded_heartbeat
        self._on_stall = on_stall
        self._loop: asyncio.AbstractEventLoop | None = None
        self._store_failed_at: float | None = None
        self._failure: RelayFailedError | None = None
        self.store_error = ""
        """Why the store has not been reached since the relay began; "" once it was."""

    @asynccontextmanager
    async def run(self, *, fetching: bool = True, waiting: bool = True) -> AsyncIterator[None]:
        """Run the relay inside the block, and drain it at its end. Raises RelayFailedError if it could not continue.

        fetching: with a fetch loop of its own. waiting: wait for the store instead of raising StoreUnavailableError.
        """
        context = self._context
        context.lifecycle.begin()
        try:
            await context.clock.sleep(seconds(context.config.initial_delay))
            if await self._join(waiting=waiting and not self._fail_fast):
                context.lifecycle.run()
                async with self._children(fetching=fetching):
                    yield
            else:
                yield
        finally:
            context.heartbeat.ticked = 0.0
            context.lifecycle.end()

    @asynccontextmanager
    async def _children(self, *, fetching: bool) -> AsyncIterator[None]:
        context, parts = self._context, self._parts
        context.announce(RelayStarted(relay=context.relay, name=context.name))
        parts.stalls.begin()
        self._failure = None
        heartbeat = self._heartbeat()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._guard(child)) for child in self._list(fetching=fetching)]
            try:
                yield
            finally:
                # In a task of its own: in a cancelled one, Python 3.11.2 takes every timeout for another cancellation.
                await asyncio.create_task(self._end(heartbeat, tasks))
        if self._failure is not None:
            raise self._failure

    def _list(self, *, fetching: bool) -> list[Child]:
        parts, transports = self._parts, self._context.routing.transports
        children: list[Child] = [parts.settlement.run, partial(self._retrying, parts.coordinator.run)]
        if fetching:
            children.append(partial(self._retrying, partial(parts.fetch_loop.run, parts.fetcher, parts.sender)))
            children += [partial(parts.health.watch, name) for name in transports]
            if self._context.config.wakeup == "notify":
                children.append(partial(self._retrying, parts.fetch_loop.listen))
                children.append(partial(self._retrying, parts.fetch_loop.tell_producers))
        children += [partial(parts.sender.run, transport) for transport in transports.values()]
        return children

    async def _guard(self, child: Child) -> None:
        try:
            await child()
        except Exception as error:
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cast("BaseExceptionGroup[BaseException]", cause).exceptions[0]
            # Python gives a MemoryError no text.
            reason = _NO_MEMORY if isinstance(cause, MemoryError) else cause
            self.fail(f"{type(cause).__name__}: {reason}", cause)

    def fail(self, reason: str, cause: BaseException | None = None) -> None:
        """The relay cannot continue: drain it. The first failure is the reason; later ones are its consequence."""
        if self._failure is None:
            self._failure = RelayFailedError(f"the relay stopped by itself: {reason}")
            self._failure.__cause__ = cause
        self._context.lifecycle.drain()

    # -- the store -------------------------------------------------------------------------------------------------

    async def _join(self, *, waiting: bool) -> bool:
        """Join once the store can be reached and, with `fail_fast`, every transport. Returns False if the relay is
        stopped before that. Raises SchemaError, and unless `waiting`, StoreUnavailableError and UnavailableError."""
        context, parts = self._context, self._parts
        backoff = Backoff(context.rng)
        while not context.lifecycle.draining:
            try:
                await context.store.schema.check()
                if self._fail_fast:
                    for name in context.routing.transports:
                        await parts.health.check(name)
                await parts.lanes.join()
            except StoreUnavailableError as error:
                if not waiting:
                    raise
                self.store_error = str(error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._store_failed(error, backoff)):
                        await context.lifecycle.until_draining()
            else:
                self.store_error = ""
                self._store_restored()
                return True
        return False

    async def _retrying(self, child: Child) -> None:
        """Run a child again, after a growing pause, whenever the store is unavailable."""
        clock, backoff = self._context.clock, Backoff(self._context.rng)
        while True:
            began = clock.monotonic()
            try:
                await child()
            except StoreUnavailableError as error:
                if clock.monotonic() - began > MAX_RECONNECT_PAUSE:
                    backoff.reset()  # the store answered for a while: this is another outage
                await clock.sleep(self._store_failed(error, backoff))

    def _store_failed(self, error: StoreUnavailableError, backoff: Backoff) -> float:
        """Announce that the store cannot be reached; returns how long to pause before the next attempt."""
        delay = backoff.next()
        if self._store_failed_at is None:
            self._store_failed_at = self._context.clock.monotonic()
        self._context.announce(StoreFailed(relay=self._context.relay, error=str(error), delay=delay))
        return delay

    def _store_restored(self) -> None:
        if self._store_failed_at is not None:
            outage = self._context.clock.monotonic() - self._store_failed_at
            self._store_failed_at = None
            self._context.announce(StoreRestored(relay=self._context.relay, seconds=outage))

    # -- the end ---------------------------------------------------------------------------------------------------

    async def _end(self, heartbeat: Heartbeat | HeartbeatThread, tasks: Iterable[asyncio.Task[None]]) -> None:
        parts, drained = self._parts, False
        try:
            drained = await self.drain()
        finally:
            # No renewal may come after the relay has left: it would find its lease gone.
            await heartbeat.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await parts.coordinator.leave()
            parts.settlement.abandon()
            self._context.announce(RelayStopped(relay=self._context.relay, drained=drained))

    async def drain(self) -> bool:
        """Begin nothing any more and wait, at most `drain_timeout`, until what is in flight is settled."""
        context, parts = self._context, self._parts
        context.lifecycle.drain()
        context.release(context.in_flight.unsent())
        failpoints.hit("before-drain")
        end = context.clock.monotonic() + seconds(context.config.drain_timeout)
        while context.clock.monotonic() < end and not self._is_drained() and not parts.settlement.ended:
            await context.wakeups.until_change(CHECK_EVERY)
        failpoints.hit("after-drain")
        return self._is_drained()

    def _is_drained(self) -> bool:
        return self._parts.fetcher.idle and self._parts.sender.idle and self._parts.settlement.idle

    # -- the heartbeat, whose thread calls these ---------------------------------------------------------------------

    def _heartbeat(self) -> Heartbeat | HeartbeatThread:
        self._loop = asyncio.get_running_loop()
        make = partial(Heartbeat, self._context, self)
        store = self._context.store
        heartbeat = HeartbeatThread(make, store, self.heartbeat_failed) if self._threaded else make(store)
        heartbeat.begin()
        return heartbeat

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        """Call on the relay's loop, which may have ended."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback, *arguments)

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        # While the lease was over, senders waited, and nothing else would wake them.
        suspended = not self._context.ownership.may_send()
        self._parts.lanes.renewed(deadline, renewal)
        self._call(self._after_renewal)
        if suspended:
            self._call(self._context.wakeups.all)

    def _after_renewal(self) -> None:
        self._store_restored()
        self._parts.stalls.check()

    def lease_lost(self, reason: str) -> None:
        self._call(self._parts.lanes.lease_lost, reason)

    def loop_stalled(self, reason: str) -> None:
        if self._on_stall is not None:
            self._on_stall(reason)
        self._call(self._parts.lanes.lease_lost, reason)
        self._call(self.fail, reason)

    def heartbeat_failed(self, error: Exception) -> None:
        self._call(self.fail, f"its heartbeat failed: {error!r}", error)

    def session_lost(self) -> None:
        self._parts.lanes.session_lost()

    def lanes_available(self) -> None:
        self._call(self._parts.coordinator.hurry)
