"""Fetching: rounds of queries for ready, scheduled, waiting and parked messages, and the placement of what they bring.

Fetches run one after another and are numbered. A fetch never continues from a position: it leaves out what is in
flight.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from pillarbox import failpoints
from pillarbox.core.fetch import MAX_BYTES, Bounds, Due, Fetched, FetchQuery, NextInQueues, Parked, Ready, check_range
from pillarbox.core.message import KeyQueue, Message
from pillarbox.core.observations import BatchFetched, EmptyFetch
from pillarbox.relay.placement import FetchedMessage, Placer, Round

if TYPE_CHECKING:
    from pillarbox.relay.destination_state import DestinationState
    from pillarbox.relay.in_flight import InFlight
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.settle import Settlement

T = TypeVar("T")
_Messages = list[FetchedMessage]
_Found = tuple[_Messages, Message | None]  # and the first message that did not fit, see `Fetched`
# Of its fields, in a third of the time of `FetchedMessage(…)`.
_fetched_message: Callable[[Iterable[Any]], FetchedMessage] = partial(cast(Any, tuple).__new__, FetchedMessage)

DUE_EVERY = 0.5
"""Seconds between two fetches of scheduled messages, unless a retry is known to be due."""
ORPHANS_EVERY = 5.0
"""Seconds between two searches for orphaned queues."""
ORPHANS_PER_STEP = 500
"""Ordering queues that one step of that search visits."""
QUEUES_PER_FETCH = 100
"""Ordering queues, or destinations, for which one fetch brings messages."""
LIMITED_PER_ROUND = 20
"""Destinations that take a few messages only, such as a probe, for which one round fetches."""
MAX_ROWS = 1_000_000


class OversizedMessage(NamedTuple):
    """A message that is larger than a fetch: the kind of fetch that found it, its lane and its destination."""

    query: type[FetchQuery]
    lane: int
    destination: str


class ByteBudget:
    """How many bytes the fetches of a round may return, so that the messages in flight stay within their limit.

    A fetch brings at most a quarter of the limit, and never more than `MAX_BYTES`. A round begins only if two such
    fetches fit: one for everything that waits, one for what is ready. A message that is larger than a fetch comes
    alone, once nothing is in flight; until then no round begins, so that others cannot keep it out forever.
    """

    def __init__(self, limit: int, in_flight: InFlight) -> None:
        self._limit = limit
        self._in_flight = in_flight
        self.per_fetch = min(MAX_BYTES, max(1, limit // 4))
        self._waiting = 0
        self._brought = 0
        self.rows = MAX_ROWS
        """How many messages to fetch: about twice as many as fitted recently, because the database measures all."""
        self.oversized: OversizedMessage | None = None
        """The large message that the next round fetches alone; None: fetch everything."""

    def begin(self) -> bool:
        """Begin a round; False: the limit of bytes in flight is reached."""
        free = self._limit - self._in_flight.bytes
        if len(self._in_flight) and (self.oversized is not None or free < 2 * self.per_fetch):
            return False
        self._waiting = self._brought = 0
        return True

    @property
    def left(self) -> int:
        """Bytes that fetches of waiting messages may still return in this round."""
        return self.per_fetch - self._waiting

    @property
    def alone(self) -> bool:
        """Whether the first message of a fetch may be larger than it: nothing else is in flight."""
        return not len(self._in_flight) and not self._brought

    def brought(self, query: FetchQuery, found: Fetched, size: int, *, waited: bool) -> None:
        """Count the bytes that a fetch returned, and remember the message that did not fit."""
        self._brought += size
        if waited:
            self._waiting += size
        self.rows = min(MAX_ROWS, 2 * max(2, len(found) if found.left_out is not None else self.rows))
        if found.left_out is not None and not found and self.oversized is None:
            self.oversized = OversizedMessage(type(query), found.left_out.lane, found.left_out.destination)

    def fitting(self, fetched: Sequence[FetchedMessage]) -> int:
        """How many of these messages, from the first on, fit within the limit of bytes in flight."""
        free = self._limit - self._in_flight.bytes
        if self._brought <= free:
            return len(fetched)
        for number, one in enumerate(fetched):
            free -= one.size
            if free < 0 and (number or len(self._in_flight)):
                return number
        return len(fetched)


class Fetcher:
    """Fetches messages and places them."""

    def __init__(self, context: RelayContext, settlement: Settlement) -> None:
        self._context, self._config = context, context.config
        self._in_flight, self._destinations = context.in_flight, context.destinations
        self._schedule, self._clock = context.schedule, context.clock
        self._budget = ByteBudget(self._config.max_bytes, context.in_flight)
        self._placer = Placer(context, settlement, self._budget)
        self._max_in_flight = self._config.max_in_flight
        self._one_at_a_time = asyncio.Lock()
        self.began_at = -math.inf  # the last round, on the monotonic clock
        self.more = False  # the last fetch left ready messages in the table
        # Unknown destinations for which messages are parked: by another relay, or before routes changed.
        self._unknown: set[str] = set()
        self._quota, self._turn = 1, 0
        # Fetches of what is not ready; the one whose turn it is first.
        self._kinds: deque[tuple[type[FetchQuery], Callable[[list[int]], Awaitable[_Messages]]]] = deque()
        self._kinds += [(NextInQueues, self._fetch_waiting), (Due, self._fetch_due)]
        self._kinds += [(Parked, self._fetch_unknown), (Parked, self._fetch_parked)]
        self._range: tuple[datetime | None, datetime | None] = (None, None)

    def restrict(self, recorded_after: datetime | None, recorded_before: datetime | None) -> None:
        """Fetch only messages recorded in this range, see `Bounds`. Raises ConfigurationError."""
        check_range(recorded_after, recorded_before)
        self._range = recorded_after, recorded_before

    @property
    def idle(self) -> bool:
        """Whether no round is running, and no write of a round is under way."""
        return not self._one_at_a_time.locked()

    @property
    def capacity(self) -> int:
        """How many more messages may be in flight."""
        return self._max_in_flight - len(self._in_flight)

    def between_rounds(self) -> asyncio.Lock:
        """No round is under way while this lock is held: whatever was fetched is in flight, and nothing else is."""
        return self._one_at_a_time

    async def fetch(self, *, thoroughly: bool = False) -> int:
        """One round of fetches; returns how many messages were put in flight or moved out of the way."""
        # One after another: a fetch that began before a settlement must not end after the next one began.
        async with self._one_at_a_time:
            self._context.barrier.begin_round()
            self._schedule.exhausted = False
            if self._context.routing.by_type:
                self._destinations.drop_idle(self._in_flight.count)
            self._destinations.begin_round()
            lanes = _in_turn(self._context.ownership.fetchable, self._turn)
            if not lanes or self.capacity <= 0 or not self._destinations.any_available() or not self._budget.begin():
                return 0
            self._turn += 1
            self.began_at = self._clock.monotonic()
            large, self._budget.oversized = self._budget.oversized, None
            if large is not None and large.lane in lanes:
                lanes = _in_turn(lanes, lanes.index(large.lane))
            waiting = await self._fetch_not_ready(lanes, large, thoroughly)
            ready, frontier = await self._fetch_ready(lanes, thoroughly)
            done = 0
            if (round := await self._placer.place(waiting, ready, frontier)) is not None:
                self._schedule.exhausted = not waiting and self._is_exhausted(round, len(ready))
                # To fetch those that stay in the table again at once would be a hot loop.
                done = round.done - round.stay
        if not done and self._context.announce.observers:
            self._context.announce(EmptyFetch(relay=self._context.relay))
        return done

    def _is_exhausted(self, round: Round, ready: int) -> bool:
        """Whether another round would return no more ready messages than these."""
        schedule = self._schedule
        more = self.more or schedule.orphans_after or schedule.queues or self._unknown or self._budget.oversized
        if more or round.placed != ready or round.quarantined is not None:
            return False
        return not any(state.parked for state in self._destinations)

    async def _query(self, query: FetchQuery, *, waited: bool) -> _Found:
        context = self._context
        context.barrier.fetches += 1
        number, epochs = context.barrier.fetches, context.ownership.epochs
        began = self._clock.monotonic()
        if failpoints.armed:
            failpoints.hit("before-fetch")
        messages = await context.store.messages.fetch(query)
        sizes = [message.size for message in messages]
        self._budget.brought(query, messages, sum(sizes), waited=waited)
        if messages:
            if failpoints.armed:
                failpoints.hit("after-fetch")
            if context.announce.observers:
                took = self._clock.monotonic() - began
                context.announce(BatchFetched(relay=context.relay, messages=tuple(messages), seconds=took))
        epoch_of = [epochs.get(message.lane, 0) for message in messages]
        names = map(context.routing.resolve, messages)
        fields = zip(messages, names, repeat(number), repeat(waited), epoch_of, sizes)
        return list(map(_fetched_message, fields)), messages.left_out

    def _bounds(self, limit: int, quota: int | None = None, *, max_bytes: int | None = None) -> Bounds:
        limit = max(1, min(self._config.batch_size, self._budget.rows, limit))
        return Bounds(
            limit=limit,
            quota=quota or limit,
            max_bytes=max(1, self._budget.left if max_bytes is None else max_bytes),
            alone=self._budget.alone,
            in_flight=list(self._in_flight.positions),
            recorded_after=self._range[0],
            recorded_before=self._range[1],
        )

    async def _fetch_ready(self, lanes: list[int], thoroughly: bool) -> tuple[_Messages, dict[int, float]]:
        """Fetch ready messages; returns also the sequence up to which each lane has no ready message in the table."""
        batch = self._config.batch_size
        limit = min(batch, self._budget.rows, self.capacity)
        quota = limit if thoroughly else max(1, min(self._quota, limit))
        bounds = self._bounds(limit, quota, max_bytes=self._budget.per_fetch)
        epochs = self._context.ownership.epochs
        fetched, left_out = await self._query(Ready(lanes=lanes, bounds=bounds), waited=False)
        fair = -(-batch // len(lanes))
        cut = len(fetched) >= bounds.limit or left_out is not None
        # Few lanes have work: fetch more of each. Many have: no more than their fair part, so that none is cut off.
        self._quota = max(fair, self._quota // 2) if cut else min(batch, max(fair, self._quota * 2))
        counts: Counter[int] = Counter([one.message.lane for one in fetched])
        frontier = {lane: math.inf if not cut and counts[lane] < quota else -1.0 for lane in lanes}
        if self._context.crash_guard.crashed_lanes:
            self._context.crash_guard.fetched(fetched, frontier, epochs)
        self.more = cut or max(counts.values(), default=0) >= quota
        # They come in the order of their sequence: the last one of a lane is its greatest.
        for lane, sequence in {one.message.lane: one.message.id for one in fetched}.items():
            frontier[lane] = max(frontier[lane], sequence)
        if left_out is not None:
            frontier[left_out.lane] = max(frontier[left_out.lane], left_out.id)
        return fetched, frontier

    async def _fetch_not_ready(self, lanes: list[int], large: OversizedMessage | None, thoroughly: bool) -> _Messages:
        """Scheduled, waiting and parked messages; for a message that is to come alone, only those of its kind."""
        if large is None and (thoroughly or self._clock.monotonic() >= self._schedule.next_orphans):
            await self._find_orphans(lanes)
        if thoroughly:
            self._schedule.next_due = 0.0
        if large is not None and large.query is Parked:
            # First and alone: it would not fit alongside a small event for another destination.
            return (await self._query_parked(lanes, [large.destination], self.capacity // 2))[0]
        fetched: _Messages = []
        for _ in range(len(self._kinds)):
            if self._budget.left <= 0:
                break  # the others have their turn first in the next round
            kind, fetch = self._kinds[0]
            self._kinds.rotate(-1)
            if large is None or large.query is kind:
                fetched += await fetch(lanes)
        return fetched

    async def _fetch_due(self, lanes: list[int]) -> _Messages:
        if not self._schedule.begin_due(self._clock.monotonic(), every=DUE_EVERY):
            return []
        fetched, left_out = await self._query(Due(lanes=lanes, bounds=self._bounds(self.capacity // 2)), waited=True)
        if left_out is not None:
            self._schedule.due_within(0)
        return fetched

    async def _fetch_parked(self, lanes: list[int]) -> _Messages:
        """What is parked for destinations that are available again: one fetch for all that take many, and one for each
        that takes a few, whose messages would fill the fetch of others; some of those now, the rest next time."""
        now, batch = self._clock.monotonic(), self._config.batch_size
        if self._budget.left <= 0:
            return []
        allowance = self._placer.allowance
        takers = [(one, takes) for one in self._destinations if one.parked and (takes := allowance(one, now)) > 0]
        many = [state for state, takes in takers if takes >= batch]
        few = [(state, takes) for state, takes in takers if takes < batch]
        fetched: _Messages = []
        if many:
            some = _in_turn(many, self._turn)[:QUEUES_PER_FETCH]
            fetched += await self._fetch_parked_for(lanes, some, self.capacity // 2)
        for state, takes in _in_turn(few, self._turn)[:LIMITED_PER_ROUND]:
            if self._budget.left > 0:
                # Messages that wait for sends that hang may come first, and cannot be sent: fetch beyond them.
                hanging = 0 if state.breaker.state(now) == "closed" else self._in_flight.count(state.endpoint.name)
                fetched += await self._fetch_parked_for(lanes, [state], min(takes + hanging, self.capacity // 2))
        return fetched

    async def _fetch_parked_for(self, lanes: list[int], states: Sequence[DestinationState], limit: int) -> _Messages:
        fetched, left_out = await self._query_parked(lanes, [state.endpoint.name for state in states], limit)
        for state in states:
            # Only an empty fetch tells that nothing is parked any more.
            state.parked = bool(fetched) or left_out is not None
        return fetched

    async def _fetch_unknown(self, lanes: list[int]) -> _Messages:
        if not self._unknown:
            return []
        names = [self._unknown.pop() for _ in range(min(QUEUES_PER_FETCH, len(self._unknown)))]
        fetched, left_out = await self._query_parked(lanes, names, self.capacity // 2)
        if left_out is not None:
            self._unknown.update(names)
        return fetched

    async def _query_parked(self, lanes: list[int], names: list[str], limit: int) -> _Found:
        return await self._query(Parked(lanes=lanes, destinations=names, bounds=self._bounds(limit)), waited=True)

    async def _fetch_waiting(self, _: list[int]) -> _Messages:
        """The next messages of queues whose first one is gone."""
        schedule = self._schedule
        queues = [schedule.queues.popleft() for _ in range(min(QUEUES_PER_FETCH, len(schedule.queues)))]
        queues = [queue for queue in queues if self._context.ownership.works(queue.lane)]
        if not queues:
            return []
        bounds = self._bounds(self.capacity // 2)
        fetched, left_out = await self._query(NextInQueues(queues=queues, bounds=bounds), waited=True)
        if len(fetched) >= bounds.limit or left_out is not None:
            seen = {(one.message.lane, one.message.key, one.message.destination) for one in fetched}
            schedule.continue_queues(queue for queue in queues if queue not in seen)
        if left_out is not None and not fetched and left_out.key is not None:
            # It comes alone, and first: the fetch for it must not find another one before it.
            queue = KeyQueue(left_out.lane, left_out.key, left_out.destination)
            schedule.queues.remove(queue)
            schedule.queues.appendleft(queue)
        return fetched

    async def _find_orphans(self, lanes: list[int]) -> None:
        """Find queues of which messages wait although nothing precedes them, and destinations with parked messages."""
        schedule, messages = self._schedule, self._context.store.messages
        step = await messages.orphaned_queues(lanes, limit=ORPHANS_PER_STEP, after=schedule.orphans_after)
        schedule.orphans_after = step.after
        schedule.next_orphans = self._clock.monotonic() + (ORPHANS_EVERY if step.after is None else 0.0)
        schedule.continue_queues(step.queues)
        names = set(await messages.parked_destinations(lanes))
        self._unknown = names - {state.endpoint.name for state in self._destinations}
        self._destinations.fetch_parked(names)


def _in_turn(things: list[T], turn: int) -> list[T]:
    """The same, each time beginning with another."""
    first = turn % max(1, len(things))
    return [*things[first:], *things[:first]]
