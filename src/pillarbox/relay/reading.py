"""Looking: what is ready, what is due, what waits behind a head that is gone, what was put aside for a destination that
opened; and what becomes of a message that cannot go now.

Looks run one after another and are numbered. A look never goes on from a position; it leaves out what is in hand.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime

from pillarbox.core import failpoints
from pillarbox.core.clock import Clock
from pillarbox.core.looks import BehindHeads, Bounds, Due, Look, PutAside, Ready
from pillarbox.core.message import Held, Message, Probe, Slot
from pillarbox.core.observations import Announcer, BatchRead, LookedInVain
from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Store
from pillarbox.relay.gates import Gates
from pillarbox.relay.hand import Hand, Item, line_of
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing
from pillarbox.relay.sorting import Seen, Sorted, Sorter
from pillarbox.relay.stops import Stops
from pillarbox.relay.suspicion import NOTE
from pillarbox.relay.tuning import Tuning

DUE_EVERY = 0.5
HEADLESS_EVERY = 5.0
SLOTS_PER_LOOK = 100
LINES_PER_BITE = 500


class Reader:
    """Fills the hand."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        routing: Routing,
        gates: Gates,
        hand: Hand,
        stops: Stops,
        ownership: Ownership,
        sorter: Sorter,
        tuning: Tuning,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._store = store
        self._routing = routing
        self._gates = gates
        self._hand = hand
        self._stops = stops
        self._ownership = ownership
        self._sorter = sorter
        self._tuning = tuning
        self._clock = clock
        self._announce = announce
        self._one_at_a_time = asyncio.Lock()
        self.stopping = False
        """Take nothing in hand any more."""
        self._to_read_on: deque[Slot] = deque()
        self._next_due = 0.0
        self._next_headless = 0.0
        self._headless_after: Slot | None = None
        self._strangers: set[str] = set()
        self._quota = 1
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
        self._gates.look_aside()

    def due_within(self, delay: float) -> None:
        """A message comes back after so long: do not sleep past it."""
        self._next_due = min(self._next_due, self._clock.monotonic() + delay)

    @property
    def idle(self) -> bool:
        """No look is under way, and nothing that one found is being written."""
        return not self._one_at_a_time.locked()

    @property
    def room(self) -> int:
        return self._tuning.most_in_hand - len(self._hand)

    def next_look(self) -> float:
        """Seconds until something may be due."""
        return max(0.0, self._next_due - self._clock.monotonic())

    async def look_around(self, *, thoroughly: bool = False) -> int:
        """One round of looks; returns how many messages were taken in hand or moved out of the way."""
        # One after another: a look that began before a settlement must not end after the next one began.
        async with self._one_at_a_time:
            self._stops.begin_round()
            lanes = self._ownership.readable
            if not lanes or self.room <= 0 or not self._gates.any_open():
                return 0
            waiting = await self._look_at_what_waits(lanes, thoroughly=thoroughly)
            ready, frontier = await self._look_at_what_is_ready(lanes, thoroughly=thoroughly)
            done = await self._take(self._in_their_turn(waiting, frontier) + ready)
        if not done:
            self._announce(LookedInVain(relay=self.relay))
        return done

    async def _look_at_what_waits(self, lanes: list[int], *, thoroughly: bool) -> list[Seen]:
        now = self._clock.monotonic()
        if thoroughly or now >= self._next_headless:
            await self._find_headless(lanes)
        seen = await self._read_lines_on()
        if thoroughly or now >= self._next_due:
            self._next_due = now + DUE_EVERY
            seen += await self._look(Due(lanes=lanes, bounds=self._bounds(self.room // 2)), waited=True)
        seen += await self._look_at_strangers(lanes)
        for gate in self._gates:
            if gate.aside and (allowed := gate.may_send(now)) > 0:
                bounds = self._bounds(min(allowed, self.room // 2))
                found = await self._look(
                    PutAside(lanes=lanes, destinations=[gate.place.name], bounds=bounds), waited=True
                )
                # Only a look that saw nobody tells that nobody waits any more.
                gate.aside = bool(found)
                seen += found
        return seen

    async def _look_at_strangers(self, lanes: list[int]) -> list[Seen]:
        """What was put aside for destinations not met here so far: by a relay before this one, or before its routes
        were changed."""
        if not self._strangers:
            return []
        names = [self._strangers.pop() for _ in range(min(SLOTS_PER_LOOK, len(self._strangers)))]
        bounds = self._bounds(self.room // 2)
        return await self._look(PutAside(lanes=lanes, destinations=names, bounds=bounds), waited=True)

    async def _look_at_what_is_ready(
        self, lanes: list[int], *, thoroughly: bool
    ) -> tuple[list[Seen], dict[int, float]]:
        """What is ready, and how far each lane is in hand now: no ready message before that is left in the table."""
        limit = min(self._tuning.batch_size, self.room)
        quota = limit if thoroughly else max(1, min(self._quota, limit))
        bounds = self._bounds(limit, quota)
        seen = await self._look(Ready(lanes=lanes, bounds=bounds), waited=False)
        fair = -(-self._tuning.batch_size // len(lanes))
        cut = _cut(seen, bounds)
        # Few lanes have work: take more of each. Many have: no more than their fair part, so that none is cut off.
        self._quota = max(fair, self._quota // 2) if cut else min(self._tuning.batch_size, max(fair, self._quota * 2))
        counts: Counter[int] = Counter(one.message.lane for one in seen)
        frontier = {lane: math.inf if not cut and counts[lane] < quota else -1.0 for lane in lanes}
        for one in seen:
            frontier[one.message.lane] = max(frontier[one.message.lane], one.message.id)
        return seen, frontier

    def _in_their_turn(self, waiting: list[Seen], frontier: dict[int, float]) -> list[Seen]:
        """Those that wait come when every ready message before them is in hand; the others are met again."""
        turn = [one for one in waiting if one.message.id < frontier.get(one.message.lane, -1)]
        if len(turn) < len(waiting):
            self.read_on(
                [
                    Slot(m.lane, m.key, m.destination)
                    for m in (one.message for one in waiting)
                    if m.held == Held.BEHIND.value and m.key is not None and m.id >= frontier.get(m.lane, -1)
                ]
            )
            self.due_within(0.05)
        return turn

    def _bounds(self, most: int, quota: int | None = None) -> Bounds:
        limit = max(1, min(self._tuning.batch_size, most))
        return Bounds(
            limit=limit,
            quota=quota or limit,
            in_hand=list(self._hand.places),
            recorded_after=self.recorded_after,
            recorded_before=self.recorded_before,
        )

    async def _read_lines_on(self) -> list[Seen]:
        slots = [self._to_read_on.popleft() for _ in range(min(SLOTS_PER_LOOK, len(self._to_read_on)))]
        slots = [slot for slot in slots if self._ownership.owns(slot.lane)]
        if not slots:
            return []
        bounds = self._bounds(self.room // 2)
        seen = await self._look(BehindHeads(slots=slots, bounds=bounds), waited=True)
        if _cut(seen, bounds):
            met = {(one.message.lane, one.message.key, one.message.destination) for one in seen}
            self.read_on([slot for slot in slots if slot not in met])
        return seen

    async def _find_headless(self, lanes: list[int]) -> None:
        bite = await self._store.messages.headless(lanes, limit=LINES_PER_BITE, after=self._headless_after)
        self._headless_after = bite.after
        self._next_headless = self._clock.monotonic() + (HEADLESS_EVERY if bite.after is None else 0.0)
        self.read_on(bite.slots)
        self._strangers = set(await self._store.messages.aside(lanes)) - {gate.place.name for gate in self._gates}
        self._gates.look_aside()

    async def _look(self, look: Look, *, waited: bool) -> list[Seen]:
        self._stops.looks += 1
        number = self._stops.looks
        began = self._clock.monotonic()
        failpoints.hit("before-read")
        messages = await self._store.messages.read(look)
        if messages:
            failpoints.hit("after-read")
            took = self._clock.monotonic() - began
            self._announce(BatchRead(relay=self.relay, messages=tuple(messages), seconds=took))
        return [Seen(message, number, waited) for message in messages]

    async def _take(self, seen: list[Seen]) -> int:
        if not seen or self.stopping:
            return 0
        seen.sort(key=lambda one: one.message.id)
        found = self._sorter.sort(seen, await self._held_back([one.message for one in seen]))
        await self._write(found)
        return found.done

    async def _held_back(self, messages: Sequence[Message]) -> set[tuple[int, str]]:
        """The read's flag is exact for messages with a destination; for others it is asked once more, with theirs."""
        behind = {message.place for message in messages if message.behind and message.destination}
        asked: list[Message] = []
        probes: list[Probe] = []
        for message in messages:
            if message.behind and not message.destination and message.key is not None:
                names = self._routing.resolve(message)
                if len(names) == 1:
                    asked.append(message)
                    probes.append(Probe(message.lane, message.key, names[0], message.id))
        if probes:
            answers = await self._store.messages.earlier(probes)
            behind |= {message.place for message, answer in zip(asked, answers, strict=True) if answer}
        return behind

    async def _note_before_sending(self, suspects: list[Item]) -> None:
        for item in suspects:
            # In hand from here on: its lane must not be given back meanwhile.
            self._hand.keep(item)
        messages = [Resolved(item.message, item.destination) for item in suspects]
        try:
            noted = await self._store.writes.note(self._ownership.epochs, messages, error=NOTE, charge=True)
        finally:
            self._hand.forget(suspects)
        for item in suspects:
            if self._ownership.owns(item.message.lane) and item.message.lane not in noted.lost:
                item.message = item.message.to(item.destination)._replace(attempts=item.message.attempts + 1)
                item.noted = True
                self._hand.add(item)

    async def _write(self, found: Sorted) -> None:
        epochs = self._ownership.epochs
        if found.splits:
            await self._store.writes.split(epochs, found.splits)
            for split in found.splits:
                self._stops.let_go(line_of(split.message, ""))
        if found.behind:
            await self._store.writes.hold(epochs, found.behind, Held.BEHIND)
            # Their head may have gone meanwhile: a look begun from here on knows.
            self.read_on([Slot(m.lane, m.key, name) for m, name in found.behind if m.key is not None])
        if found.suspects:
            await self._note_before_sending(found.suspects)
        if found.aside:
            await self._store.writes.hold(epochs, found.aside, Held.ASIDE)


def _cut(seen: Sequence[Seen], bounds: Bounds) -> bool:
    """Whether a look may have left something out because it was enough."""
    return len(seen) >= bounds.limit or sum(len(one.message.payload) for one in seen) > bounds.max_bytes // 2
