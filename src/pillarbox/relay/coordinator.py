"""The coordinator: what a relay does besides delivering, twice per heartbeat.

Each round exchanges destination states and overrides, balances the lanes, executes operator requests and reports
statistics. Between two rounds the owner of the first lane deletes data past its retention period, in small batches.
Beside the rounds it keeps the transports connected.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from pillarbox.core.clock import seconds
from pillarbox.core.errors import PillarboxError, RowsRefusedError, StoreUnavailableError, UnavailableError
from pillarbox.core.observations import (
    LanesReleased,
    OperatorRequestsExecuted,
    Pruned,
    RelayStateChanged,
    StoreFailed,
    TransportConnected,
    TransportFailed,
)
from pillarbox.core.outcome import RequestResults
from pillarbox.core.retry import Backoff
from pillarbox.core.statistics import OUTBOX, SAMPLE_INTERVAL, BacklogStatistics, OutcomeStatistics
from pillarbox.pruning import prune_in_batches

if TYPE_CHECKING:
    from pillarbox.relay.fetch import Fetcher
    from pillarbox.relay.lanes import LaneBalancer
    from pillarbox.relay.relay import RelayContext

SHOWN_AFTER = 1.0
"""Seconds in flight after which a message is shown as PROCESSING."""
REQUESTS_PER_ROUND = 1000
"""Operator requests that one round executes."""
RETENTION_INTERVAL = 60.0
"""Seconds between two searches for data past its retention period."""


class Coordinator:
    """Runs the rounds of one relay."""

    def __init__(self, context: RelayContext, lanes: LaneBalancer, fetcher: Fetcher, health: TransportHealth) -> None:
        self._context = context
        self._lanes = lanes
        self._fetcher = fetcher
        self._health = health
        self._retention = RetentionJob(context)
        self._next_report = 0.0
        """When to report statistics, on the monotonic clock."""
        self._announced: RelayStateChanged | None = None
        self._hurried = asyncio.Event()
        self.rounds = 0
        """Rounds completed so far."""

    def hurry(self) -> None:
        """Lanes can be acquired: begin the next round now."""
        self._hurried.set()

    async def run(self) -> None:
        """Run round after round."""
        context, lanes, lifecycle = self._context, self._lanes, self._context.lifecycle
        while True:
            now = context.clock.monotonic()
            context.heartbeat.ticked = now
            context.heartbeat.in_flight = list(context.in_flight.in_flight_longer_than(SHOWN_AFTER, now))
            context.heartbeat.breakers = lanes.shown_breakers(reachable=self._health.reachable)
            self._announce_state()
            # Before any lane is acquired: overrides must be known before the first message is fetched.
            await context.destinations.exchange(context)
            if lanes.drain_requested and not lifecycle.draining:
                lifecycle.stop()
            if not lifecycle.draining:
                if lanes.must_join:
                    await lanes.join()
                await lanes.balance()
                await context.crash_guard.take_back(context)
                await context.crash_guard.clear_crashes(context)
                await self._execute_requests()
                await self._report_statistics(now)
            self.rounds += 1
            await self._pause(seconds(context.config.heartbeat_interval) / 2)

    async def _pause(self, length: float) -> None:
        clock = self._context.clock
        end = clock.monotonic() + length
        if not self._context.lifecycle.draining:
            await self._retention.run(until=end)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end - clock.monotonic())):
                await self._hurried.wait()
        self._hurried.clear()

    async def leave(self) -> None:
        """Report what was counted, release all lanes and unregister the relay."""
        context, store = self._context, self._context.store
        lanes = tuple(sorted(context.ownership.lose_all()))
        # The next owner of the lanes, this relay included, fetches again what the end interrupted.
        context.in_flight.drop_lanes(lanes)
        try:
            if counted := context.statistics.collect():
                await store.statistics.add(context.relay, counted)
            await context.crash_guard.take_back(context)
            await store.lanes.release(context.relay)
            await store.wakeup.request(context.relay, 0)
        except PillarboxError:
            # The lease ends by itself.
            return
        if lanes:
            context.announce(LanesReleased(relay=context.relay, lanes=lanes))

    def _announce_state(self) -> None:
        context = self._context
        state = RelayStateChanged(
            relay=context.relay,
            lanes=len(context.ownership.epochs),
            in_flight=len(context.in_flight),
            breakers=context.destinations.states(),
            rates=context.destinations.rates(),
            paused=context.destinations.paused(),
        )
        if state != self._announced:
            self._announced = state
            context.announce(state)

    # -- operator requests ----------------------------------------------------------------------------------------

    async def _execute_requests(self) -> None:
        context = self._context
        if not context.ownership.epochs:
            return
        async with self._fetcher.between_rounds():
            done, deferred = await self._execute()
            # Unsent messages are released; the request for one that is being sent stays open until it is decided.
            if deferred and (unsent := context.in_flight.unsent_from(deferred)):
                context.release(unsent)
                done += (await self._execute()).done
        if done:
            context.announce(OperatorRequestsExecuted(relay=context.relay, count=done))
            context.schedule.due_within(0)
            # The first message of a queue may be gone, and the next may come.
            context.schedule.search_orphans()
            context.wakeups.all()

    async def _execute(self) -> RequestResults:
        context = self._context
        in_flight = set(context.in_flight.positions)
        return await context.store.writes.execute_requests(
            context.ownership.epochs, limit=REQUESTS_PER_ROUND, in_flight=in_flight
        )

    # -- statistics -----------------------------------------------------------------------------------------------

    async def _report_statistics(self, now: float) -> None:
        """Write the counts of decisions; the owner of the first lane also writes the backlog."""
        context, statistics = self._context, self._context.statistics
        if now < self._next_report:
            return
        self._next_report = now + SAMPLE_INTERVAL
        counted = statistics.collect()
        values: dict[str, OutcomeStatistics | BacklogStatistics] = dict(counted)
        try:
            if context.ownership.owns(0):
                values[OUTBOX] = await self._backlog()
            if values:
                await context.store.statistics.add(context.relay, values)
        except StoreUnavailableError:
            statistics.put_back(counted)
            raise

    async def _backlog(self) -> BacklogStatistics:
        seen = await self._context.store.statistics.backlog()
        return BacklogStatistics(recorded=seen.recorded, backlog=seen.messages, oldest=seen.oldest, dead=seen.dead)


class RetentionJob:
    """Deletes data past its retention period, for all relays: only the owner of the first lane does."""

    def __init__(self, context: RelayContext) -> None:
        self._context = context
        self._kept = context.config.retention.in_seconds
        self._next = 0.0

    async def run(self, *, until: float) -> None:
        """Delete until nothing is past its retention period or that time is reached; the next call continues."""
        context, pruning = self._context, self._context.store.pruning
        now = context.clock.monotonic()
        if now < self._next or not context.ownership.owns(0):
            return
        await context.store.schema.prepare()
        deleted = 0
        try:
            async with aclosing(prune_in_batches(pruning, self._kept, clock=context.clock)) as batches:
                async for count in batches:
                    deleted += count
                    if context.clock.monotonic() >= until or not context.ownership.owns(0):
                        return
            self._next = now + RETENTION_INTERVAL
        except RowsRefusedError as error:
            # A foreign key of the application refers to old rows. That is not an outage: nothing else waits for it.
            self._next = now + RETENTION_INTERVAL
            context.announce(StoreFailed(relay=context.relay, error=str(error), delay=RETENTION_INTERVAL))
        finally:
            if deleted:
                context.announce(Pruned(relay=context.relay, count=deleted))


class TransportHealth:
    """Keeps the transports of one relay connected.

    A transport connects and declares its topology when it is pinged: at the start, and whenever one of its destinations
    was unavailable, not with the first event. While its broker cannot be reached, the relay announces it and retries.
    As soon as the broker answers, the breakers of the transport's destinations close, whether or not an event is
    pending.
    """

    def __init__(self, context: RelayContext) -> None:
        self._context = context
        self._transports = context.routing.transports
        self._down_since: dict[str, float] = {}
        self.errors: dict[str, str] = {}
        """Transport → why it cannot be used now."""
        self.waiting = set(self._transports)
        """Transports that have not been reached since the relay began."""

    @property
    def reachable(self) -> bool:
        """Whether every transport answered when it was pinged last."""
        return not (self.errors or self.waiting)

    async def watch(self, name: str) -> None:
        """Keep one transport connected."""
        doubted = self._context.destinations.doubted[name]
        backoff = Backoff(self._context.rng)
        self.waiting.add(name)
        while True:
            doubted.clear()
            try:
                await self.check(name)
            except UnavailableError as error:
                delay = backoff.next()
                self.errors[name] = str(error)
                self._down_since.setdefault(name, self._context.clock.monotonic())
                self._context.announce(
                    TransportFailed(relay=self._context.relay, transport=name, error=str(error), delay=delay)
                )
                await self._context.clock.sleep(delay)
            else:
                backoff.reset()
                self._connected(name)
                await doubted.wait()

    async def check(self, name: str) -> None:
        """Ping: connect, declare, ask the broker something. Raises UnavailableError, whatever the transport raises."""
        try:
            await self._transports[name].ping()
        except UnavailableError:
            raise
        except Exception as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from error

    def _connected(self, name: str) -> None:
        self.errors.pop(name, None)
        since = self._down_since.pop(name, None)
        if name in self.waiting or since is not None:
            self.waiting.discard(name)
            outage = 0.0 if since is None else self._context.clock.monotonic() - since
            self._context.announce(TransportConnected(relay=self._context.relay, transport=name, seconds=outage))
        if since is not None:
            self._context.destinations.reconnected(self._transports[name])
            self._context.wakeups.all()
