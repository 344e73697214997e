"""Looking: what is ready, what is due, what waits behind a head that is gone, what was put aside for a destination that
opened; and what becomes of a message that cannot go now.

Looks run one after another and are numbered. A look never goes on from a position; it leaves out what is in hand.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.looks import BehindHeads, Bounds, Due, Look, PutAside, Ready
from pillarbox.core.message import Held, Message, Probe, Slot
from pillarbox.core.observations import Announcer, BatchRead, LookedInVain
from pillarbox.core.outcome import Outcome, Resolved, Split
from pillarbox.core.store import Store
from pillarbox.relay import failpoints
from pillarbox.relay.gates import Gates
from pillarbox.relay.hand import Hand, Item, LineKey, line_of
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing
from pillarbox.relay.settlement import Settlement
from pillarbox.relay.stops import Stops
from pillarbox.relay.suspicion import NOTE, Suspicion
from pillarbox.relay.tuning import Tuning
from pillarbox.relay.verdict import no_route

DUE_EVERY = 0.5
HEADLESS_EVERY = 5.0
SLOTS_PER_LOOK = 100
LINES_PER_BITE = 500


@dataclass(slots=True)
class _Sorted:
    """What a look brought, by what is to be done with it."""

    splits: list[Split] = field(default_factory=list)
    behind: list[Resolved] = field(default_factory=list)
    aside: list[Resolved] = field(default_factory=list)
    suspects: list[Item] = field(default_factory=list)
    taken: int = 0


class _Seen(NamedTuple):
    """A message as a look brought it."""

    message: Message
    look: int
    waited: bool
    """It lies among those that wait: others may wait behind it."""


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
        settlement: Settlement,
        suspicion: Suspicion,
        tuning: Tuning,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._store = store
        self._routing = routing
        self._gates = gates
        self._hand = hand
        self._stops = stops
        self._ownership = ownership
        self._settlement = settlement
        self._suspicion = suspicion
        self._tuning = tuning
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._one_at_a_time = asyncio.Lock()
        self._to_read_on: deque[Slot] = deque()
        self._next_due = 0.0
        self._next_headless = 0.0
        self._headless_after: Slot | None = None
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
    def room(self) -> int:
        return self._tuning.most_in_hand - len(self._hand)

    def next_look(self) -> float:
        """Seconds until something may be due."""
        return max(0.0, self._next_due - self._clock.monotonic())

    async def look_around(self, *, thoroughly: bool = False) -> int:
        """One round of looks; returns how many messages were taken in hand or moved out of the way."""
        # One after another: a look that began before a settlement must not end after the next one began.
        async with self._one_at_a_time:
            lanes = self._ownership.readable
            if not lanes or self.room <= 0 or not self._gates.any_open():
                return 0
            waiting = await self._look_at_what_waits(lanes, thoroughly=thoroughly)
            ready, frontier = await self._look_at_what_is_ready(lanes)
            done = await self._take(self._in_their_turn(waiting, frontier) + ready)
        if not done:
            self._announce(LookedInVain(relay=self.relay))
        return done

    async def _look_at_what_waits(self, lanes: list[int], *, thoroughly: bool) -> list[_Seen]:
        now = self._clock.monotonic()
        if thoroughly or now >= self._next_headless:
            await self._find_headless(lanes)
        seen = await self._read_lines_on()
        if thoroughly or now >= self._next_due:
            self._next_due = now + DUE_EVERY
            seen += await self._look(Due(lanes=lanes, bounds=self._bounds(self.room // 2)), waited=True)
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

    async def _look_at_what_is_ready(self, lanes: list[int]) -> tuple[list[_Seen], dict[int, float]]:
        """What is ready, and how far each lane is in hand now: no ready message before that is left in the table."""
        limit = min(self._tuning.batch_size, self.room)
        quota = max(1, min(self._quota, limit))
        bounds = self._bounds(limit, quota)
        seen = await self._look(Ready(lanes=lanes, bounds=bounds), waited=False)
        fair = -(-self._tuning.batch_size // len(lanes))
        cut = len(seen) >= limit or sum(len(one.message.payload) for one in seen) > bounds.max_bytes // 2
        # Few lanes have work: take more of each. Many have: no more than their fair part, so that none is cut off.
        self._quota = max(fair, self._quota // 2) if cut else min(self._tuning.batch_size, max(fair, self._quota * 2))
        counts: Counter[int] = Counter(one.message.lane for one in seen)
        frontier = {lane: math.inf if not cut and counts[lane] < quota else -1.0 for lane in lanes}
        for one in seen:
            frontier[one.message.lane] = max(frontier[one.message.lane], one.message.id)
        return seen, frontier

    def _in_their_turn(self, waiting: list[_Seen], frontier: dict[int, float]) -> list[_Seen]:
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

    async def _read_lines_on(self) -> list[_Seen]:
        slots = [self._to_read_on.popleft() for _ in range(min(SLOTS_PER_LOOK, len(self._to_read_on)))]
        slots = [slot for slot in slots if self._ownership.owns(slot.lane)]
        if not slots:
            return []
        return await self._look(BehindHeads(slots=slots, bounds=self._bounds(self.room // 2)), waited=True)

    async def _find_headless(self, lanes: list[int]) -> None:
        bite = await self._store.messages.headless(lanes, limit=LINES_PER_BITE, after=self._headless_after)
        self._headless_after = bite.after
        self._next_headless = self._clock.monotonic() + (HEADLESS_EVERY if bite.after is None else 0.0)
        self.read_on(bite.slots)
        self._gates.look_aside()

    async def _look(self, look: Look, *, waited: bool) -> list[_Seen]:
        self._stops.looks += 1
        number = self._stops.looks
        began = self._clock.monotonic()
        messages = await self._store.messages.read(look)
        if messages:
            failpoints.hit("after-read")
            took = self._clock.monotonic() - began
            self._announce(BatchRead(relay=self.relay, messages=tuple(messages), seconds=took))
        return [_Seen(message, number, waited) for message in messages]

    async def _take(self, seen: list[_Seen]) -> int:
        if not seen:
            return 0
        seen.sort(key=lambda one: one.message.id)
        behind = await self._really_behind([one.message for one in seen])
        sorted_out = self._sort(seen, behind)
        await self._write(sorted_out)
        return sorted_out.taken + len(sorted_out.splits) + len(sorted_out.behind) + len(sorted_out.aside)

    async def _really_behind(self, messages: Sequence[Message]) -> set[tuple[int, str]]:
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

    def _sort(self, seen: Sequence[_Seen], behind: set[tuple[int, str]]) -> _Sorted:
        sorted_out = _Sorted()
        held_up: set[LineKey] = set()
        left_alone: set[LineKey] = set()
        now = self._clock.monotonic()
        for message, look, waited in seen:
            if not self._ownership.works(message.lane) or message.place in self._hand.places:
                continue
            names = self._routing.resolve(message)
            if self._stops.hold_back(message, names[0] if len(names) == 1 else "", look):
                continue
            if not names:
                self._without_route(message, waited=waited, now=now)
            elif len(names) > 1:
                sorted_out.splits.append(Split(message, names))
                # Its copies come with a later look: whatever is behind them must not slip past.
                self._stops.let_go(line_of(message, ""))
            else:
                self._place(message, names[0], behind, held_up, left_alone, sorted_out, waited=waited, now=now)
        return sorted_out

    def _place(
        self,
        message: Message,
        name: str,
        behind: set[tuple[int, str]],
        held_up: set[LineKey],
        left_alone: set[LineKey],
        sorted_out: _Sorted,
        *,
        waited: bool,
        now: float,
    ) -> None:
        line = line_of(message, name)
        gate = self._gates.of(self._routing.place(name))
        # The flags come from two snapshots: whatever follows one that is held up in this look is behind it.
        if line in left_alone:
            return
        if message.place in behind or line in held_up:
            held_up.add(line)
            if message.held != Held.BEHIND.value:
                sorted_out.behind.append(Resolved(message, name))
        elif (verdict := self._suspicion.convicted(message)) is not None:
            self._settle_at_once(Item(message, name, waited, now), verdict)
            sorted_out.taken += 1
        elif self._suspicion.suspects(message):
            # One suspect at a time: a crash hits whatever is in hand, and only the culprit is to be counted.
            if not sorted_out.suspects and not self._hand.has_suspect():
                sorted_out.suspects.append(Item(message, name, waited, now, noted=True))
                sorted_out.taken += 1
            left_alone.add(line)
        elif gate.may_send(now) > 0:
            self._hand.add(Item(message, name, waited, now))
            sorted_out.taken += 1
        else:
            held_up.add(line)
            # Out of the others' way; if there are no others, it may as well stay where it is.
            if message.held != Held.ASIDE.value and self._gates.any_open():
                sorted_out.aside.append(Resolved(message, name))
                gate.aside = True

    def _without_route(self, message: Message, *, waited: bool, now: float) -> None:
        item = Item(message, message.destination, waited, now)
        self._settle_at_once(item, no_route(message, self._chance, after_death=self._tuning.after_death))

    def _settle_at_once(self, item: Item, outcome: Outcome) -> None:
        self._hand.keep(item)
        self._settlement.add(item, outcome)

    async def _note_before_sending(self, suspects: list[Item]) -> None:
        messages = [Resolved(item.message, item.destination) for item in suspects]
        await self._store.writes.note(self._ownership.epochs, messages, error=NOTE, charge=True)
        for item in suspects:
            item.message = item.message.to(item.destination)._replace(attempts=item.message.attempts + 1)
            self._hand.add(item)

    async def _write(self, sorted_out: _Sorted) -> None:
        epochs = self._ownership.epochs
        if sorted_out.splits:
            await self._store.writes.split(epochs, sorted_out.splits)
            for split in sorted_out.splits:
                self._stops.let_go(line_of(split.message, ""))
        if sorted_out.behind:
            await self._store.writes.hold(epochs, sorted_out.behind, Held.BEHIND)
            # Their head may have gone meanwhile: a look begun from here on knows.
            self.read_on([Slot(m.lane, m.key, name) for m, name in sorted_out.behind if m.key is not None])
        if sorted_out.suspects:
            await self._note_before_sending(sorted_out.suspects)
        if sorted_out.aside:
            await self._store.writes.hold(epochs, sorted_out.aside, Held.ASIDE)
