"""Looking: what is ready, what is due, what waits behind a head that is gone, what was put aside for a destination that
opened; and what becomes of a message that cannot go now.

Looks run one after another and are numbered. A look never goes on from a position; it leaves out what is in flight.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from pillarbox import failpoints
from pillarbox.core.clock import Clock, seconds
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.fetch import BehindHeads, Bounds, Due, Look, PutAside, Ready
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message, Probe, Slot
from pillarbox.core.observations import Announcer, BatchFetched, EmptyFetch, LanesLost, StoreFailed
from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Store
from pillarbox.relay.admission import Budget, Large, Seen, Sorted, Sorter, Stops
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.crash_guard import NOTE, Suspicion
from pillarbox.relay.destinations import Gate, Gates
from pillarbox.relay.in_flight import InFlight, Item, queue_of
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing

T = TypeVar("T")
_by_place = attrgetter("message.id")
_seen: Callable[[Iterable[Any]], Seen] = partial(tuple.__new__, Seen)  # of its fields, a third of the time of `Seen(…)`

DUE_EVERY = 0.5
HEADLESS_EVERY = 5.0
MOMENT = 0.02
"""Seconds: moments at which retries are due are told apart no finer."""
MOMENTS = 500
"""Moments that are remembered, the next ones; a retry that is due at any other is found within `DUE_EVERY`."""
SLOTS_PER_LOOK = 100
LINES_PER_BITE = 500
PAUSE_PER_MESSAGE = 20e-6
"""Seconds between two fetches for each message in flight: every fetch carries and steps over all of them."""
FEW = 5
"""Times that pause where there is room for a few only, as where one key fills what may be in flight."""
LONGEST_PAUSE = 0.1
"""Seconds between two fetches, however many are in flight; and never more than `poll_interval`."""
FEW_PER_ROUND = 20
"""Destinations that take a few messages only, such as a probe, for which one round looks."""


class _Found(NamedTuple):
    """What one look brought."""

    seen: list[Seen]
    left_out: Message | None
    """The first that did not fit, as `Fetched` tells it."""


class Fetcher:
    """Fills what is in flight."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        routing: Routing,
        gates: Gates,
        in_flight: InFlight,
        stops: Stops,
        ownership: Ownership,
        sorter: Sorter,
        suspicion: Suspicion,
        config: RelayConfig,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._store = store
        self._routing = routing
        self._gates = gates
        self._in_flight = in_flight
        self._stops = stops
        self._ownership = ownership
        self._sorter = sorter
        self._suspicion = suspicion
        self._config = config
        self._clock = clock
        self._announce = announce
        self._one_at_a_time = asyncio.Lock()
        self.stopping = False
        """Take nothing in hand any more."""
        self._to_read_on: deque[Slot] = deque()
        self._next_due = 0.0
        self._retries: set[float] = set()
        """Moments at which retries that this relay wrote are due."""
        self._fetched_at = -math.inf
        self._longest_pause = min(LONGEST_PAUSE, seconds(config.poll_interval))
        self._more = False
        """The last fetch left ready messages in the table."""
        self.took_all = False
        """The last round put everything in flight that it could have seen: there is no more to fetch until something
        commits or falls due."""
        self._next_headless = 0.0
        self._headless_after: Slot | None = None
        self._strangers: set[str] = set()
        self._quota = 1
        self._turn = 0
        self._budget = Budget(config.max_bytes, in_flight)
        self._kinds: deque[tuple[type[Look], Callable[[list[int]], Awaitable[list[Seen]]]]] = deque(
            [
                (BehindHeads, self._read_lines_on),
                (Due, self._look_at_what_is_due),
                (PutAside, self._look_at_strangers),
                (PutAside, self._look_aside),
            ]
        )
        """The looks at what waits; the one whose turn it is first."""
        self.recorded_after: datetime | None = None
        self.recorded_before: datetime | None = None

    def read_on(self, slots: Sequence[Slot]) -> None:
        """The heads of these lines are gone: what waits behind them may come."""
        known = set(self._to_read_on)
        self._to_read_on.extend(slot for slot in dict.fromkeys(slots) if slot not in known)

    def look_for_headless(self) -> None:
        """Lanes changed hands: lines may have lost their head with their owner."""
        self._headless_after = None
        self._next_headless = 0.0

    def due_within(self, delay: float) -> None:
        """Look for due messages with the first fetch after so long."""
        self._next_due = min(self._next_due, self._clock.monotonic() + delay)

    def retry_within(self, delay: float) -> None:
        """A message comes back after so long: fetch it then."""
        self._retries.add(math.ceil((self._clock.monotonic() + delay) / MOMENT) * MOMENT)
        if len(self._retries) > MOMENTS:
            self._retries.remove(max(self._retries))

    def next_retry(self) -> float:
        """Seconds until the next moment at which a message comes back; those that are past wait for something else."""
        now = self._clock.monotonic()
        return min((moment - now for moment in self._retries if moment > now), default=math.inf)

    @property
    def idle(self) -> bool:
        """No look is under way, and nothing that one found is being written."""
        return not self._one_at_a_time.locked()

    @property
    def room(self) -> int:
        return self._config.max_in_flight - len(self._in_flight)

    def pause(self) -> float:
        """Seconds until the next fetch is worth what it costs: the more is in flight, the dearer it is, and the less
        it brings. Not at all where ready messages are known to wait and there is room for many."""
        few = self.room < self._config.min_batch
        if self._more and not few:
            return 0.0
        pause = min(PAUSE_PER_MESSAGE * len(self._in_flight) * (FEW if few else 1), self._longest_pause)
        return self._fetched_at + pause - self._clock.monotonic()

    @asynccontextmanager
    async def between_looks(self) -> AsyncIterator[None]:
        """No look is under way meanwhile: whatever was read is in flight, and nothing else is."""
        async with self._one_at_a_time:
            yield

    async def look_around(self, *, thoroughly: bool = False) -> int:
        """One round of looks; returns how many messages were taken in hand or moved out of the way."""
        # One after another: a look that began before a settlement must not end after the next one began.
        async with self._one_at_a_time:
            self._stops.begin_round()
            self.took_all = False
            if self._routing.by_type:
                self._gates.forget_idle(self._in_flight.count)
            self._gates.begin_round()
            lanes = _in_turn(self._ownership.readable, self._turn)
            if not lanes or self.room <= 0 or not self._gates.any_open() or not self._budget.begin():
                return 0
            self._turn += 1
            self._fetched_at = self._clock.monotonic()
            large, self._budget.large = self._budget.large, None
            if large is not None and large.lane in lanes:
                lanes = _in_turn(lanes, lanes.index(large.lane))
            waiting = await self._look_at_what_waits(lanes, large, thoroughly=thoroughly)
            ready, frontier = await self._look_at_what_is_ready(lanes, thoroughly=thoroughly)
            done = await self._take(waiting, ready, frontier)
        if not done:
            self._announce(EmptyFetch(relay=self.relay))
        return done

    async def _look_at_what_waits(self, lanes: list[int], large: Large | None, *, thoroughly: bool) -> list[Seen]:
        """Everything that waits, or, for a message that is to come alone, only those of its kind."""
        if large is None and (thoroughly or self._clock.monotonic() >= self._next_headless):
            await self._find_headless(lanes)
        if thoroughly:
            self._next_due = 0.0
        if large is not None and large.look is PutAside:
            # First and alone: it would not fit beside a small event that a fetch for another destination brought.
            bounds = self._bounds(self.room // 2)
            alone = PutAside(lanes=lanes, destinations=[large.destination], bounds=bounds)
            return (await self._look(alone, waited=True)).seen
        seen: list[Seen] = []
        for _ in range(len(self._kinds)):
            if self._budget.left <= 0:
                break  # the others have their turn first in the next round
            kind, look = self._kinds[0]
            self._kinds.rotate(-1)
            if large is None or large.look is kind:
                seen += await look(lanes)
        return seen

    async def _look_at_what_is_due(self, lanes: list[int]) -> list[Seen]:
        now = self._clock.monotonic()
        past = {moment for moment in self._retries if moment <= now}
        if now < self._next_due and not past:
            return []
        self._next_due = now + DUE_EVERY
        self._retries -= past
        found = await self._look(Due(lanes=lanes, bounds=self._bounds(self.room // 2)), waited=True)
        if found.left_out is not None:
            self.due_within(0)
        return found.seen

    async def _look_aside(self, lanes: list[int]) -> list[Seen]:
        """What was put aside for destinations that take something again: one look for all that take many, and one for
        each that takes a few, whose messages would fill the look of others; some of those now, the rest next time."""
        now = self._clock.monotonic()
        if self._budget.left <= 0:
            return []
        takers = [(gate, takes) for gate in self._gates if gate.aside and (takes := self._sorter.takes(gate, now)) > 0]
        many = [gate for gate, takes in takers if takes >= self._config.batch_size]
        few = [(gate, takes) for gate, takes in takers if takes < self._config.batch_size]
        seen: list[Seen] = []
        if many:
            seen += await self._look_aside_for(lanes, _in_turn(many, self._turn)[:SLOTS_PER_LOOK], self.room // 2)
        for gate, takes in _in_turn(few, self._turn)[:FEW_PER_ROUND]:
            if self._budget.left > 0:
                # Those behind sends that hang may come first, and cannot go: see beyond them.
                hanging = 0 if gate.breaker.state(now) == "closed" else self._in_flight.count(gate.place.name)
                seen += await self._look_aside_for(lanes, [gate], min(takes + hanging, self.room // 2))
        return seen

    async def _look_aside_for(self, lanes: list[int], gates: Sequence[Gate], most: int) -> list[Seen]:
        names = [gate.place.name for gate in gates]
        found = await self._look(PutAside(lanes=lanes, destinations=names, bounds=self._bounds(most)), waited=True)
        for gate in gates:
            # Only a look that saw nobody tells that nobody waits any more.
            gate.aside = bool(found.seen) or found.left_out is not None
        return found.seen

    async def _look_at_strangers(self, lanes: list[int]) -> list[Seen]:
        """What was put aside for destinations not met here so far: by a relay before this one, or before its routes
        were changed."""
        if not self._strangers:
            return []
        names = [self._strangers.pop() for _ in range(min(SLOTS_PER_LOOK, len(self._strangers)))]
        bounds = self._bounds(self.room // 2)
        found = await self._look(PutAside(lanes=lanes, destinations=names, bounds=bounds), waited=True)
        if found.left_out is not None:
            self._strangers.update(names)
        return found.seen

    async def _look_at_what_is_ready(
        self, lanes: list[int], *, thoroughly: bool
    ) -> tuple[list[Seen], dict[int, float]]:
        """What is ready, and how far each lane is in hand now: no ready message before that is left in the table."""
        limit = min(self._config.batch_size, self._budget.rows, self.room)
        quota = limit if thoroughly else max(1, min(self._quota, limit))
        bounds = self._bounds(limit, quota, most_bytes=self._budget.per_look)
        seen, left_out = await self._look(Ready(lanes=lanes, bounds=bounds), waited=False)
        fair = -(-self._config.batch_size // len(lanes))
        cut = len(seen) >= bounds.limit or left_out is not None
        # Few lanes have work: take more of each. Many have: no more than their fair part, so that none is cut off.
        self._quota = max(fair, self._quota // 2) if cut else min(self._config.batch_size, max(fair, self._quota * 2))
        counts: Counter[int] = Counter([one.message.lane for one in seen])
        frontier = {lane: math.inf if not cut and counts[lane] < quota else -1.0 for lane in lanes}
        self._more = cut or max(counts.values(), default=0) >= quota
        # They come in the order of their ids: the last one of a lane is its greatest.
        for lane, place in {one.message.lane: one.message.id for one in seen}.items():
            frontier[lane] = max(frontier[lane], place)
        if left_out is not None:
            frontier[left_out.lane] = max(frontier[left_out.lane], left_out.id)
        return seen, frontier

    def _in_their_turn(
        self, waiting: list[Seen], frontier: dict[int, float], held_back: Collection[tuple[int, str]]
    ) -> list[Seen]:
        """Those that wait come when every ready message before them is in hand; the others are met again.

        What is not to be sent anyway, because it is held back or split, is moved out of the way at once: left there, it
        would fill one look after another, and a retry that is due would not be found behind it.
        """
        turn: list[Seen] = []
        later: list[Seen] = []
        for one in waiting:
            comes = (
                one.message.id < frontier.get(one.message.lane, -1)
                or one.message.place in held_back
                or len(self._routing.resolve(one.message)) > 1
            )
            (turn if comes else later).append(one)
        self._meet_again(later)
        return turn

    def _meet_again(self, later: Sequence[Seen]) -> None:
        """These were brought and are not taken: look for them once more."""
        waiting = [one.message for one in later if one.waited]
        if waiting:
            self.read_on(
                [
                    Slot(m.lane, m.key, m.destination)
                    for m in waiting
                    if m.held == Held.BEHIND.value and m.key is not None
                ]
            )
            self.due_within(0.05)

    def _bounds(self, most: int, quota: int | None = None, *, most_bytes: int | None = None) -> Bounds:
        limit = max(1, min(self._config.batch_size, self._budget.rows, most))
        return Bounds(
            limit=limit,
            quota=quota or limit,
            max_bytes=max(1, self._budget.left if most_bytes is None else most_bytes),
            alone=self._budget.alone,
            in_hand=list(self._in_flight.places),
            recorded_after=self.recorded_after,
            recorded_before=self.recorded_before,
        )

    async def _read_lines_on(self, _: list[int]) -> list[Seen]:
        slots = [self._to_read_on.popleft() for _ in range(min(SLOTS_PER_LOOK, len(self._to_read_on)))]
        slots = [slot for slot in slots if self._ownership.works(slot.lane)]
        if not slots:
            return []
        bounds = self._bounds(self.room // 2)
        seen, left_out = await self._look(BehindHeads(slots=slots, bounds=bounds), waited=True)
        if len(seen) >= bounds.limit or left_out is not None:
            met = {(one.message.lane, one.message.key, one.message.destination) for one in seen}
            self.read_on([slot for slot in slots if slot not in met])
        if left_out is not None and not seen and left_out.key is not None:
            # It comes alone, and first: the look for it must not meet another one before it.
            slot = Slot(left_out.lane, left_out.key, left_out.destination)
            self._to_read_on.remove(slot)
            self._to_read_on.appendleft(slot)
        return seen

    async def _find_headless(self, lanes: list[int]) -> None:
        bite = await self._store.messages.headless(lanes, limit=LINES_PER_BITE, after=self._headless_after)
        self._headless_after = bite.after
        self._next_headless = self._clock.monotonic() + (HEADLESS_EVERY if bite.after is None else 0.0)
        self.read_on(bite.slots)
        names = set(await self._store.messages.aside(lanes))
        self._strangers = names - {gate.place.name for gate in self._gates}
        self._gates.look_aside(names)

    async def _look(self, look: Look, *, waited: bool) -> _Found:
        self._stops.looks += 1
        number, epochs = self._stops.looks, self._ownership.epochs
        began = self._clock.monotonic()
        failpoints.hit("before-read")
        messages = await self._store.messages.read(look)
        sizes = [message.size for message in messages]
        self._budget.brought(look, messages, sum(sizes), waited=waited)
        if messages:
            failpoints.hit("after-read")
            took = self._clock.monotonic() - began
            self._announce(BatchFetched(relay=self.relay, messages=tuple(messages), seconds=took))
        epoch_of = [epochs.get(message.lane, 0) for message in messages]
        found = list(map(_seen, zip(messages, repeat(number), repeat(waited), epoch_of, sizes)))
        return _Found(found, messages.left_out)

    async def _take(self, waiting: list[Seen], ready: list[Seen], frontier: dict[int, float]) -> int:
        if not (waiting or ready) or self.stopping:
            return 0
        held_back = await self._held_back([one.message for one in waiting + ready if one.message.behind])
        seen = self._in_their_turn(waiting, frontier, held_back) + ready
        seen.sort(key=_by_place)
        fitting = self._budget.fitting(seen)
        self._meet_again(seen[fitting:])
        found = self._sorter.sort(seen[:fitting], held_back)
        stay = await self._write(found)
        self.took_all = not waiting and found.taken == len(ready) and self._is_exhausted(found)
        # What stays where it is, such as a suspect while another one is being sent, has nobody else to bring it again.
        self._meet_again(
            [one for one in seen[:fitting] if one.waited and one.message.place not in self._in_flight.places]
        )
        # To look again at once for those that stay would be a busy loop.
        return found.done - stay

    def _is_exhausted(self, found: Sorted) -> bool:
        """Whether no other round would bring more."""
        more = self._more or self._to_read_on or self._headless_after or self._strangers or self._budget.large
        return not more and found.suspect is None and not any(gate.aside for gate in self._gates)

    async def _held_back(self, messages: Sequence[Message]) -> set[tuple[int, str]]:
        """Which of those that the read flagged are behind another one: the flag is exact for messages with a
        destination; for others it is asked once more, with theirs."""
        behind = {message.place for message in messages if message.destination}
        asked: list[Message] = []
        probes: list[Probe] = []
        for message in messages:
            if not message.destination and message.key is not None:
                names = self._routing.resolve(message)
                if len(names) == 1:
                    asked.append(message)
                    probes.append(Probe(message.lane, message.key, names[0], message.id))
        if probes:
            answers = await self._store.messages.earlier(probes)
            behind |= {message.place for message, answer in zip(asked, answers, strict=True) if answer}
        return behind

    async def _note_before_sending(self, epochs: Epochs, item: Item) -> Settled:
        message = item.message.to(item.destination)
        # An attempt of its own that this relay outlived is not counted a second time.
        again = self._suspicion.charged(message)
        self._suspicion.charge(message)
        # In hand from here on: its lane must not be given back meanwhile.
        self._in_flight.keep(item)
        written = True  # for all that is known, until the store answers
        try:
            noted = await self._store.writes.note(
                epochs, [Resolved(item.message, item.destination)], error=NOTE, charge=True, noted=again
            )
            written = noted.count > 0
        except RowsRefusedError:
            written = False
            raise
        finally:
            held = self._in_flight.holds(item)
            self._in_flight.forget([item])
            if not written and not again:
                self._suspicion.cleared([message.identity])
        if written and held:
            item.become(message if again else message._replace(attempts=message.attempts + 1))
            item.noted = True
            self._in_flight.add(item)
        return noted

    async def _write(self, found: Sorted) -> int:
        """Write what is to be moved out of the way; returns how many stay where they are all the same."""
        epochs = self._ownership.epochs
        stay = 0
        if found.splits:
            stay += await self._unless_refused(epochs, self._store.writes.split(epochs, found.splits))
            for split in found.splits:
                self._stops.let_go(queue_of(split.message, ""))
        if found.behind:
            stay += await self._unless_refused(epochs, self._store.writes.hold(epochs, found.behind, Held.BEHIND))
            # Their head may have gone meanwhile: a look begun from here on knows.
            self.read_on([Slot(m.lane, m.key, name) for m, name in found.behind if m.key is not None])
        if found.suspect is not None:
            stay += await self._unless_refused(epochs, self._note_before_sending(epochs, found.suspect))
        if found.aside:
            stay += await self._unless_refused(epochs, self._store.writes.hold(epochs, found.aside, Held.ASIDE))
        return stay

    async def _unless_refused(self, epochs: Epochs, write: Awaitable[Settled]) -> int:
        """A message whose row the database refuses stays where it is, and a later fetch tries again; others go on.
        Returns how many were refused."""
        try:
            written = await write
        except RowsRefusedError as error:
            self._announce(StoreFailed(relay=self.relay, error=str(error), delay=0.0))
            return len(error.places)
        # Lanes that a write found in other hands are not ours: to fetch from them again would never end.
        if dropped := self._ownership.lose(written.lost, epochs):
            self._announce(LanesLost(relay=self.relay, lanes=tuple(dropped)))
        return 0


def _in_turn(things: list[T], turn: int) -> list[T]:
    """The same, each time beginning with another."""
    first = turn % max(1, len(things))
    return [*things[first:], *things[:first]]
