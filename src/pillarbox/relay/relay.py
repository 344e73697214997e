"""The relay: wake → fetch → send → settle, until it is told to stop.

One event loop does everything but the heartbeat. Nothing a relay decides depends on the wall clock of its host, and
nothing depends on its memory: whatever it forgets is found again in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from enum import Enum
from os import PathLike
from types import TracebackType
from typing import Self

from pillarbox.core.clock import Chance, Clock, SystemClock, seconds, system_chance
from pillarbox.core.errors import ConfigurationError, StoreUnavailableError
from pillarbox.core.event import uuid7
from pillarbox.core.observations import Announcer, Observer, RelayDisabled, StopRequested
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.store import Store
from pillarbox.core.transport import Address, Transport
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.crash_guard import CrashGuard
from pillarbox.relay.destinations import Destinations, TransportHealth
from pillarbox.relay.fetch import Fetcher
from pillarbox.relay.heartbeat import Pulse, StallWatch
from pillarbox.relay.idle import FIRST_PAUSE, FetchBarrier, FetchSchedule, IdleWait, Wakeups
from pillarbox.relay.in_flight import InFlight
from pillarbox.relay.lanes import Coordinator, Ownership
from pillarbox.relay.retention import RetentionJob
from pillarbox.relay.routing import Destination, Route, Routing
from pillarbox.relay.send import Sender
from pillarbox.relay.settle import Settlement, Statistics
from pillarbox.relay.supervisor import CHECK_EVERY, RelayContext, RelayParts, Supervisor


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
        """Start. Raises ConfigurationError for a relay that runs."""
        if self.phase not in (Phase.STOPPED, Phase.CANCELLED):
            raise ConfigurationError("this relay runs already; for several at once make several")
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


class Relay:
    """Delivers messages from a store to their destinations. Raises ConfigurationError for what cannot work.

    `async with relay:` runs it in the background; `await relay.run()` until `stop()`; `run_once()` for one round;
    `run_until_empty()` until nothing can be sent now. All of them drain before they end, and raise RelayFailedError if
    the relay could not continue.
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
            reached. By default the relay waits for them and announces it (`StoreFailed`, `TransportFailed`).
        observers: receive every observation; they must neither raise nor block.
        on_stall: called on the heartbeat's thread when the event loop was silent for longer than `stall_limit`, after
            the lanes were released: the loop may never run again. A process with nothing else to do should exit.
        """
        self._context = context = make_context(
            store=store,
            routing=Routing(routes, destinations or {}, transports, most=(config or RelayConfig()).max_destinations),
            retry=retry,
            config=config,
            name=name,
            observers=observers,
            clock=clock,
            chance=chance,
        )
        self.id = context.relay
        self._opened = AsyncExitStack()
        self._task: asyncio.Task[None] | None = None
        self._parts = make_parts(context)
        self._supervisor = Supervisor(
            context, self._parts, fail_fast=fail_fast, threaded_heartbeat=threaded_heartbeat, on_stall=on_stall
        )

    @classmethod
    def from_settings(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        observers: Sequence[Observer] = (),
    ) -> Relay:
        """The relay of a settings file and of the environment variables, with its store and its transports.

        path: the file; None: the one that PILLARBOX_CONFIG names, else `pillarbox.toml` in the current folder, if any.
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

    def stop(self) -> None:
        """Drain: fetch no more, wait for what is in flight, settle, release the lanes."""
        self._context.lifecycle.stop()

    async def run(self) -> None:
        """Work until `stop()`, or until cancelled; both drain."""
        if self._enabled():
            async with self._supervisor.run():
                await self._context.lifecycle.until_draining()

    async def run_once(self, *, recorded_after: datetime | None = None, recorded_before: datetime | None = None) -> int:
        """Fetch once, send and settle what that brought; returns how many messages were delivered or dead-lettered.
        Raises StoreUnavailableError where `run` would wait. For the range see `run_until_empty`."""
        if not self._enabled():
            return 0
        lifecycle, wakeups = self._context.lifecycle, self._context.wakeups
        self._parts.fetcher.restrict(recorded_after, recorded_before)
        carried = 0
        async with self._supervisor.run(fetching=False, waiting=False):
            while not lifecycle.draining and await self._has_unowned_lanes():
                await wakeups.until_change(CHECK_EVERY)
            # What is only moved, such as a message that is split, comes with the next fetch.
            while not lifecycle.draining and not carried and await self._parts.fetcher.fetch(thoroughly=True):
                carried = len(self._context.in_flight)
            wakeups.send()
            while not lifecycle.draining and not self._at_rest():
                await wakeups.until_change(CHECK_EVERY)
        return carried

    async def run_until_empty(
        self, *, recorded_after: datetime | None = None, recorded_before: datetime | None = None
    ) -> int:
        """Work until nothing can be sent now; what is scheduled, blocked, for an unavailable destination or in the lane
        of another relay stays. Returns how many messages stay; beyond some thousands, about how many.

        Raises StoreUnavailableError if the store cannot be reached at the start; a later outage is waited for.

        With a range only what was recorded in it is delivered; a key with an earlier message outside it stays.
        """
        if self._enabled():
            self._parts.fetcher.restrict(recorded_after, recorded_before)
            async with self._supervisor.run(waiting=False):
                while not self._context.lifecycle.draining and not await self._empty():
                    await self._context.wakeups.until_change(FIRST_PAUSE)
        return (await self._context.store.statistics.backlog()).messages

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

    def _enabled(self) -> bool:
        if not self._context.config.enabled:
            self._context.announce(RelayDisabled(relay=self.id))
        return self._context.config.enabled

    @property
    def silence(self) -> float | None:
        """Seconds since its loop last went round, which it does twice per heartbeat; None while it does not run."""
        ticked = self._context.pulse.ticked
        return self._context.clock.monotonic() - ticked if ticked else None

    @property
    def stalled(self) -> str:
        """Why it makes no progress although it could, and what to do; "" while it makes progress or cannot."""
        return self._context.pulse.stalled

    @property
    def waits_for(self) -> Mapping[str, str]:
        """What the relay has not reached since it began: "store" or the name of a transport → why."""
        health, store_error = self._parts.health, self._supervisor.store_error
        never = {name: health.errors.get(name, "connecting") for name in health.waiting}
        return {"store": store_error} | never if store_error else never

    def _at_rest(self) -> bool:
        return len(self._context.in_flight) == 0 and self._parts.sender.idle and self._parts.settlement.idle

    async def _has_unowned_lanes(self) -> bool:
        """Whether this relay owns nothing yet, or a lane has no owner that is alive: a relay crashed, and its lanes are
        to be taken over first."""
        if not self._context.ownership.epochs:
            return True
        return (await self._context.store.statistics.backlog()).unowned

    async def _empty(self) -> bool:
        """Whether nothing is in flight or to be settled, and a thorough fetch finds nothing that could be sent."""
        if not self._at_rest():
            return False
        before = self._parts.settlement.writes
        try:
            if await self._has_unowned_lanes():
                return False
            found = await self._parts.fetcher.fetch(thoroughly=True)
        except StoreUnavailableError:
            self._context.wakeups.send()
            return False
        if found:
            self._context.wakeups.send()
        # What was settled during the fetch may be due by now.
        return found == 0 and self._at_rest() and self._parts.settlement.writes == before


def make_context(
    *,
    store: Store,
    routing: Routing,
    retry: RetryPolicy | None = None,
    config: RelayConfig | None = None,
    name: str = "",
    observers: Sequence[Observer] = (),
    clock: Clock | None = None,
    chance: Chance | None = None,
) -> RelayContext:
    """What the parts of a new relay share. Raises ConfigurationError."""
    config, clock, chance = config or RelayConfig(), clock or SystemClock(), chance or system_chance()
    if config.at_most_once and (store.ledger is None or not store.ledger.keeps_notes):
        raise ConfigurationError(
            "relay.at_most_once needs a store with a ledger of its own: make the store with ledger=True"
        )
    relay, announce = uuid7(), Announcer(list(observers))
    in_flight, wakeups = InFlight(), Wakeups()
    destinations = Destinations(
        relay=relay, clock=clock, chance=chance, announce=announce, breaker=config.breaker, by_type=routing.by_type
    )
    for endpoint in routing.endpoints():
        destinations.of(endpoint)
    return RelayContext(
        relay=relay,
        name=name,
        store=store,
        config=config,
        retry=retry or ExponentialBackoff(),
        routing=routing,
        destinations=destinations,
        in_flight=in_flight,
        ownership=Ownership(clock, in_flight, margin=config.longest_send, count=store.lanes.count),
        barrier=FetchBarrier(),
        crash_guard=CrashGuard(window=config.max_in_flight, grace=seconds(config.lease), clock=clock),
        statistics=Statistics(),
        schedule=FetchSchedule(clock),
        wakeups=wakeups,
        lifecycle=Lifecycle(relay=relay, announce=announce, wakeups=wakeups),
        pulse=Pulse(relay=relay),
        clock=clock,
        chance=chance,
        announce=announce,
    )


def make_parts(context: RelayContext) -> RelayParts:
    """The working parts of a relay, each with those that it calls."""
    settlement = Settlement(context)
    sender, fetcher = Sender(context, settlement), Fetcher(context, settlement)
    coordinator = Coordinator(context, fetcher, RetentionJob(context))
    idle = IdleWait(context)
    return RelayParts(
        settlement=settlement,
        sender=sender,
        fetcher=fetcher,
        coordinator=coordinator,
        health=TransportHealth(context),
        idle=idle,
        stalls=StallWatch(context, coordinator, idle, sender, settlement),
    )
