"""What becomes of the messages that a fetch brought: into flight, behind their key, aside, split, or dead-lettered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.fetch import MAX_BYTES, Fetched, Look
from pillarbox.core.message import Held, Message
from pillarbox.core.observations import Announcer
from pillarbox.core.outcome import Dead, Outcome, Resolved, Retry, Split
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.crash_guard import Suspicion
from pillarbox.relay.decide import no_route, tell
from pillarbox.relay.destinations import A_LOT, Gate, Gates
from pillarbox.relay.in_flight import InFlight, Item, QueueKey, queue_of
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing
from pillarbox.relay.settle import Settlement


class Stops:
    """Looks are numbered as they begin. A line may have several decisions on their way into the store at once, and one
    round takes messages from several looks: a line is open again only once no decision is unwritten, and only for looks
    begun after the last one was written."""

    def __init__(self) -> None:
        self._unwritten: Counter[QueueKey] = Counter()
        self._known_after: dict[QueueKey, int] = {}
        self.looks = 0

    def stop(self, line: QueueKey) -> None:
        """From now on, and until its own `written`, no look knows."""
        self._unwritten[line] += 1

    def written(self, line: QueueKey) -> None:
        """A decision is committed, or void because its lane was lost: every look begun from now on knows."""
        self._unwritten[line] -= 1
        if self._unwritten[line] <= 0:
            del self._unwritten[line]
        self._known_after[line] = self.looks

    def let_go(self, line: QueueKey) -> None:
        """A message of the line went out of hand as it was: a look that is under way left it out."""
        self._known_after[line] = self.looks

    @property
    def quiet(self) -> bool:
        """Whether no queue is stopped: `hold_back` is False for every message."""
        return not self._unwritten and not self._known_after

    def begin_round(self) -> None:
        """No look is under way: whatever is written is known to all that come."""
        self._known_after.clear()

    def clear(self) -> None:
        """The relay ended: no decision of its is on the way any more."""
        self._unwritten.clear()
        self._known_after.clear()

    def hold_back(self, message: Message, destination: str, look: int) -> bool:
        """Whether a message that this look brought may stand behind something the look did not know of."""
        if message.key is None:
            return False
        own, whole_key = queue_of(message, destination), queue_of(message, "")
        return self._unknown_to(own, look) or self._unknown_to(whole_key, look)

    def _unknown_to(self, line: QueueKey, look: int) -> bool:
        return line in self._unwritten or look <= self._known_after.get(line, -1)


MANY = A_LOT // 2
"""Of a destination whose breaker is closed and that has no limit: more than any fetch brings."""
LOOKED_AT_AGAIN = 100.0
"""Messages without a route, per second: however many there are, those that have one do not wait for them."""


class Seen(NamedTuple):
    """A message as a look brought it."""

    message: Message
    look: int
    waited: bool
    """It lies among those that wait: others may wait behind it."""
    epoch: int
    """Of its lane as the look began: what a look saw before its lane was lost and taken back is out of date."""
    size: int
    """Of the message, computed once."""


@dataclass(slots=True)
class Sorted:
    """What one round of looks brought, by what is to be done with it."""

    now: float
    held_back: Collection[tuple[int, str]]
    """Places of messages that an earlier one of their key holds back."""
    taken: int = 0
    splits: list[Split] = field(default_factory=list)
    behind: list[Resolved] = field(default_factory=list)
    aside: list[Resolved] = field(default_factory=list)
    suspect: Item | None = None
    held_up: set[QueueKey] = field(default_factory=set)
    """Lines of which one waits: the rest of this round waits behind it."""
    left_alone: set[QueueKey] = field(default_factory=set)
    """Lines whose next message stays where it is: the rest of this round is met again."""
    allowances: dict[str, int] = field(default_factory=dict)
    """How many more each destination takes now."""
    open: list[str] | None = None
    """Two destinations that take something now, as far as there are; asked for once per round."""

    @property
    def done(self) -> int:
        """How many were taken in hand or are to be moved out of the way."""
        return self.taken + len(self.splits) + len(self.behind) + len(self.aside)


class Sorter:
    """Takes in hand what may go; what must be written about the rest is written by whoever looked."""

    def __init__(
        self,
        *,
        relay: str,
        routing: Routing,
        gates: Gates,
        in_flight: InFlight,
        stops: Stops,
        ownership: Ownership,
        settlement: Settlement,
        suspicion: Suspicion,
        config: RelayConfig,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._routing = routing
        self._gates = gates
        self._in_flight = in_flight
        self._stops = stops
        self._ownership = ownership
        self._settlement = settlement
        self._suspicion = suspicion
        self._on_exhausted = config.on_exhausted
        self._share = max(1, config.max_in_flight // 4)
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._looked_at_until = 0.0
        """When every message without a route was looked at again, at their pace."""

    def sort(self, seen: Sequence[Seen], held_back: Collection[tuple[int, str]]) -> Sorted:
        """Sort messages that come in the order of their places."""
        to = Sorted(self._clock.monotonic(), held_back)
        epochs, in_hand, resolve = self._ownership.readable_epochs, self._in_flight.places, self._routing.resolve
        simple = self._is_simple(to)
        add = self._in_flight.add
        for message, look, waited, epoch, size in seen:
            if epochs.get(message.lane) != epoch or (message.id, message.destination) in in_hand:
                continue
            names = resolve(message)
            if simple and len(names) == 1 and message.attempts == 0 and message.fault is None:
                # What most messages are.
                item = Item(message, names[0], waited, to.now, size)
                if self._takes_any_number(names[0], to) or (
                    not self._is_behind_a_probe(item, to) and self._takes_one_more(names[0], to)
                ):
                    add(item)
                    to.taken += 1
                    continue
            self._sort_one(message, look, waited, names, to)
            simple = self._is_simple(to)
        return to

    def _is_simple(self, to: Sorted) -> bool:
        """Whether nothing speaks against any message: no queue is stopped or held up, and no lane worked with care."""
        return not to.held_back and not to.held_up and not to.left_alone and self._stops.quiet and self._suspicion.quiet

    def _sort_one(self, message: Message, look: int, waited: bool, names: Sequence[str], to: Sorted) -> None:
        if len(names) > 1 and message.fault is None:
            # Copies stay in their place, so any number of a key may be split at once, whatever stands before them.
            to.splits.append(Split(message, tuple(names)))
            # They come with a later look: whatever is behind them must not slip past.
            self._stops.let_go(queue_of(message, ""))
        elif self._stops.hold_back(message, names[0] if len(names) == 1 else "", look):
            return
        elif (fault := message.fault) is not None:
            self._settle_at_once(Item(message, message.destination, waited, to.now), Dead(error=fault, charge=False))
            to.taken += 1
        elif not names:
            most = self._routing.most if self._routing.full else None
            outcome = no_route(message, self._chance, on_exhausted=self._on_exhausted, most_by_type=most)
            self._settle_at_once(Item(message, message.destination, waited, to.now), self._paced(outcome, to.now))
            to.taken += 1
        else:
            self._place(Item(message, names[0], waited, to.now), to)

    def _paced(self, outcome: Outcome, now: float) -> Outcome:
        """The verdict on a message without a route, later where many wait."""
        if not isinstance(outcome, Retry):
            return outcome
        self._looked_at_until = max(self._looked_at_until, now) + 1 / LOOKED_AT_AGAIN
        # In whole seconds: many come with one fetch.
        return replace(outcome, delay=max(outcome.delay, math.ceil(self._looked_at_until - now)))

    def _place(self, item: Item, to: Sorted) -> None:
        message, line = item.message, item.queue
        if line in to.left_alone:
            return
        # The flags come from two snapshots: whatever follows one that is held up in this round is behind it.
        if line in to.held_up or item.place in to.held_back:
            to.held_up.add(line)
            if message.held != Held.BEHIND.value:
                to.behind.append(Resolved(message, item.destination))
        elif self._suspicion.enough(message):
            if (verdict := self._suspicion.convicted(message)) is not None:
                self._settle_at_once(item, verdict)
                to.taken += 1
            else:
                to.left_alone.add(line)
        elif self._is_behind_a_probe(item, to) or not self._takes_one_more(item.destination, to):
            self._hold_up(item, to)
        elif self._suspicion.suspects(message):
            # One suspect at a time: a crash hits whatever is in flight, and only the culprit is to be counted.
            if to.suspect is None and not self._in_flight.has_suspect():
                to.suspect = item
                to.taken += 1
            to.left_alone.add(line)
        else:
            self._in_flight.add(item)
            to.taken += 1

    def _is_behind_a_probe(self, item: Item, to: Sorted) -> bool:
        """Whether an earlier message of its key is being sent to a destination that takes few: this one could only
        wait, and would keep the place of one that can go."""
        if not self._in_flight.is_sending(item.queue):
            return False
        return self._gates.of(self._routing.place(item.destination)).breaker.state(to.now) != "closed"

    def _takes_any_number(self, name: str, to: Sorted) -> bool:
        """Whether nothing bounds what the destination takes, as of most."""
        return to.allowances.get(name, 0) > MANY

    def _takes_one_more(self, name: str, to: Sorted) -> bool:
        """Whether the destination takes one more, beyond those that wait for it in hand already."""
        allowed = to.allowances.get(name)
        if allowed is None:
            allowed = self.takes(self._gates.of(self._routing.place(name)), to.now)
        to.allowances[name] = allowed - 1
        return allowed > 0

    def takes(self, gate: Gate, now: float) -> int:
        """How many more messages of a destination may be in flight."""
        name, allowed = gate.place.name, gate.may_send(now)
        if 0 < allowed < A_LOT:
            allowed -= len(self._in_flight.unsent(name))
        if gate.place.transport.pace.room is not None and self._gates.several:
            # A handler that is slow, or hangs, must leave room for the events of all others.
            allowed = min(allowed, self._share - self._in_flight.count(name))
        return allowed

    def _hold_up(self, item: Item, to: Sorted) -> None:
        if item.message.held == Held.ASIDE.value:
            to.held_up.add(item.queue)
        elif item.message.held == Held.BEHIND.value and self._in_flight.has(item.queue):
            # One before it is in flight, and brings it again. Put aside it would be found behind that one, without end.
            to.left_alone.add(item.queue)
        elif self._others_open(item.destination, to):
            to.held_up.add(item.queue)
            to.aside.append(Resolved(item.message, item.destination))
            self._gates.of(self._routing.place(item.destination)).aside = True
        else:
            # It is in nobody's way: it stays where it is, and so do those behind it.
            to.left_alone.add(item.queue)

    def _others_open(self, name: str, to: Sorted) -> bool:
        if to.open is None:
            to.open = self._gates.some_open(2)
        return any(other != name for other in to.open)

    def _settle_at_once(self, item: Item, outcome: Outcome) -> None:
        self._in_flight.keep(item)
        self._settlement.add(item, outcome)
        tell(self._announce, self.relay, item, outcome)


MOST_ROWS = 1_000_000


class Large(NamedTuple):
    """A message that is larger than a look: which kind of look met it, in which lane, and for which destination."""

    look: type[Look]
    lane: int
    destination: str


class Budget:
    """The bytes of one relay."""

    def __init__(self, most: int, in_flight: InFlight) -> None:
        self._most = most
        self._in_flight = in_flight
        self.per_look = min(MAX_BYTES, max(1, most // 4))
        self._waiting = 0
        self._brought = 0
        self.rows = MOST_ROWS
        """How many messages a look should ask for: about twice as many as fit lately, because the database has to weigh
        all that it is asked for."""
        self.large: Large | None = None
        """What the next round is for; None: for everything."""

    def begin(self) -> bool:
        """Begin a round; False: there is no room for one now."""
        if len(self._in_flight) and (self.large is not None or self._most - self._in_flight.bytes < 2 * self.per_look):
            return False
        self._waiting = self._brought = 0
        return True

    @property
    def left(self) -> int:
        """What the looks at what waits may still bring in this round."""
        return self.per_look - self._waiting

    @property
    def alone(self) -> bool:
        """Whether the first message of a look may be larger than it: nothing else is in flight."""
        return not len(self._in_flight) and not self._brought

    def brought(self, look: Look, found: Fetched, size: int, *, waited: bool) -> None:
        """Count what a look brought, of that size, and note what it could not bring."""
        self._brought += size
        if waited:
            self._waiting += size
        self.rows = min(MOST_ROWS, 2 * max(2, len(found) if found.left_out is not None else self.rows))
        if found.left_out is not None and not found and self.large is None:
            self.large = Large(type(look), found.left_out.lane, found.left_out.destination)

    def fitting(self, seen: Sequence[Seen]) -> int:
        """How many of these, which this round brought, fit beside what is in flight, from the first on."""
        free = self._most - self._in_flight.bytes
        if self._brought <= free:
            return len(seen)
        for number, one in enumerate(seen):
            free -= one.size
            if free < 0 and (number or len(self._in_flight)):
                return number
        return len(seen)
