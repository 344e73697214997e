"""The relay, and what its parts share: wake → fetch → send → settle, until it is told to stop.

One event loop does everything but the heartbeat. No decision of a relay depends on the wall clock of its host or on its
memory: whatever a relay forgets is in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Self

from pillarbox.core.clock import Clock, RandomSource, SystemClock, seconds, system_rng
from pillarbox.core.errors import ConfigurationError, StoreUnavailableError
from pillarbox.core.event import uuid7
from pillarbox.core.observations import Announcer, Observer, RelayDisabled
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.statistics import StatisticsCounter
from pillarbox.core.store import Store
from pillarbox.core.transport import Address, Transport
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.coordinator import Coordinator, TransportHealth
from pillarbox.relay.destinations import DestinationStates
from pillarbox.relay.fetch import Fetcher
from pillarbox.relay.fetch_loop import FIRST_FETCH_PAUSE, FetchBarrier, FetchLoop, FetchSchedule, Wakeups
from pillarbox.relay.guards import CrashGuard
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.lanes import HeartbeatState, LaneBalancer, Ownership
from pillarbox.relay.liveness import StallDetector
from pillarbox.relay.routing import Destination, Route, Routing
from pillarbox.relay.send import Sender
from pillarbox.relay.settle import Settlement
from pillarbox.relay.supervisor import CHECK_EVERY, Lifecycle, Supervisor
from pillarbox.retry_policies import ExponentialBackoff


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayContext:
    """What the parts of one relay share."""

    relay: str
    """The id of the relay."""
    name: str
    store: Store
    config: RelayConfig
    retry: RetryPolicy
    routing: Routing
    destinations: DestinationStates
    in_flight: InFlight
    ownership: Ownership
    barrier: FetchBarrier
    crash_guard: CrashGuard
    statistics: StatisticsCounter
    schedule: FetchSchedule
    wakeups: Wakeups
    lifecycle: Lifecycle
    heartbeat: HeartbeatState
    clock: Clock
    rng: RandomSource
    announce: Announcer

    def release(self, items: Sequence[Item]) -> None:
        """Give messages back as they were: nothing is written, and a later fetch brings them again."""
        if not items:
            return
        for item in items:
            self.barrier.released(item.queue)
        self.in_flight.forget(items)
        self.schedule.continue_queues(queue for item in items if item.waited and (queue := item.key_queue) is not None)
        self.wakeups.fetch()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayParts:
    """The working parts of one relay; each knows the context, and those before it."""

    settlement: Settlement
    sender: Sender
    fetcher: Fetcher
    lanes: LaneBalancer
    coordinator: Coordinator
    health: TransportHealth
    fetch_loop: FetchLoop
    stalls: StallDetector


class Relay:
    """Delivers messages from a store to their destinations. Raises ConfigurationError for invalid settings.

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
        rng: RandomSource | None = None,
        threaded_heartbeat: bool = True,
        fail_fast: bool = False,
        on_stall: Callable[[str], None] | None = None,
    ) -> None:
        """
        store, transports: where messages come from, and what sends them, by name.
        destinations, routes: addresses by name, and which events go there; by default the route of a transport.
        retry, config: None: `ExponentialBackoff()` and `RelayConfig()`.
        name: a label in output; the id of a relay is random.
        clock, rng: time and randomness, for simulations.
        threaded_heartbeat: renew the lease in a thread, so that a busy event loop keeps its lanes. False: in the loop.
        fail_fast: raise StoreUnavailableError or UnavailableError at the start if the store or a transport cannot be
            reached. By default the relay waits for them and announces it (`StoreFailed`, `TransportFailed`).
        observers: receive every observation; they must neither raise nor block.
        on_stall: called on the heartbeat's thread when the event loop was silent for longer than `stall_limit`, after
            the lanes were released: the loop may never run again. A process with nothing else to do should exit.
        """
        self._context = context = make_context(
            store=store,
            routing=Routing(
                routes, destinations or {}, transports, max_by_type=(config or RelayConfig()).max_destinations
            ),
            retry=retry,
            config=config,
            name=name,
            observers=observers,
            clock=clock,
            rng=rng,
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
        observers: Sequence[Observer] | None = None,
    ) -> Relay:
        """The relay of a settings file and of the environment variables, with its store and its transports.

        path: the file; None: the one that PILLARBOX_CONFIG names, else `pillarbox.toml` in the current folder, if any.
        environment: variables instead of those of the process. observers: None: `RelayLog`, which logs single events
        from WARNING on, unless the setting `logging.events` or the level of their logger says otherwise.

        Connects to nothing yet; `aclose()`, or the end of `async with`, closes it all. Raises ConfigurationError.
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
        """Fetch once, send and settle what that brought. Returns how many messages were in flight, with any outcome.
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

        Raises StoreUnavailableError if the store cannot be reached at the start; during a later outage it waits.

        With a range only what was recorded in it is delivered; a key with an earlier message outside it stays.
        """
        if self._enabled():
            self._parts.fetcher.restrict(recorded_after, recorded_before)
            async with self._supervisor.run(waiting=False):
                while not self._context.lifecycle.draining and not await self._empty():
                    await self._context.wakeups.until_change(FIRST_FETCH_PAUSE)
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
        """Seconds since the last iteration of its loop (two per heartbeat); None while it does not run."""
        return self._context.clock.monotonic() - ticked if (ticked := self._context.heartbeat.ticked) else None

    @property
    def in_flight(self) -> int:
        """Messages that the relay fetched, and has neither settled nor released."""
        return len(self._context.in_flight)

    @property
    def stalled(self) -> str:
        """Why it makes no progress although it could, and what to do; "" while it makes progress or cannot."""
        return self._context.heartbeat.stalled

    @property
    def waits_for(self) -> Mapping[str, str]:
        """What the relay has not reached since it began: "store" or the name of a transport → why."""
        health, error = self._parts.health, self._supervisor.store_error
        return ({"store": error} if error else {}) | {to: health.errors.get(to, "connecting") for to in health.waiting}

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
    rng: RandomSource | None = None,
) -> RelayContext:
    """What the parts of a new relay share. Raises ConfigurationError."""
    config, clock, rng = config or RelayConfig(), clock or SystemClock(), rng or system_rng()
    if config.at_most_once and (store.ledger is None or not store.ledger.records_sends):
        raise ConfigurationError(
            "relay.at_most_once needs a store with a ledger of its own: make the store with ledger=True"
        )
    relay, announce = uuid7(), Announcer(list(observers))
    in_flight, wakeups = InFlight(), Wakeups()
    destinations = DestinationStates(
        relay=relay, clock=clock, rng=rng, announce=announce, breaker=config.breaker, by_type=routing.by_type
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
        ownership=Ownership(clock, in_flight, margin=config.max_send_seconds, count=store.lanes.count),
        barrier=FetchBarrier(),
        crash_guard=CrashGuard(quarantine_size=config.max_in_flight, grace=seconds(config.lease), clock=clock),
        statistics=StatisticsCounter(),
        schedule=FetchSchedule(clock),
        wakeups=wakeups,
        lifecycle=Lifecycle(relay=relay, announce=announce, wakeups=wakeups),
        heartbeat=HeartbeatState(relay=relay),
        clock=clock,
        rng=rng,
        announce=announce,
    )


def make_parts(context: RelayContext) -> RelayParts:
    """The working parts of a relay, each with those that it calls."""
    settlement = Settlement(context)
    sender, fetcher = Sender(context, settlement), Fetcher(context, settlement)
    lanes, fetch_loop, health = LaneBalancer(context), FetchLoop(context), TransportHealth(context)
    coordinator = Coordinator(context, lanes, fetcher, health)
    return RelayParts(
        settlement=settlement,
        sender=sender,
        fetcher=fetcher,
        lanes=lanes,
        coordinator=coordinator,
        health=health,
        fetch_loop=fetch_loop,
        stalls=StallDetector(context, coordinator, fetch_loop, sender, settlement),
    )
