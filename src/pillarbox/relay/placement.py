"""Placement: what becomes of the messages that a fetch brought. The second half of a fetch, see `fetch`.

A message goes in flight, waits for an earlier one of its key, is parked for its destination, is split into one per
destination, or is settled at once because it can never be sent.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message
from pillarbox.core.observations import LanesLost, StoreFailed
from pillarbox.core.outcome import Dead, Outcome, Resolved, Retry, Split
from pillarbox.relay.decide import announce, no_route
from pillarbox.relay.destination_state import UNLIMITED, DestinationState
from pillarbox.relay.in_flight import Item, QueueKey, queue_of

if TYPE_CHECKING:
    from pillarbox.relay.fetch import ByteBudget
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.settle import Settlement

_by_sequence = attrgetter("message.id")

UNLIMITED_ALLOWANCE = UNLIMITED // 2
"""The allowance of a destination whose breaker is closed and that has no limit: more than any fetch brings."""
NO_ROUTE_RATE = 100.0
"""Messages without a route that are retried, per second: however many there are, others do not wait for them."""


class FetchedMessage(NamedTuple):
    """A message as a fetch brought it."""

    message: Message
    names: tuple[str, ...]
    """Its destinations, resolved once."""
    fetch: int
    """The number of the fetch."""
    waited: bool
    """It was scheduled, waiting or parked: others may wait for it."""
    epoch: int
    """Of its lane as the fetch began: what was fetched before a lane was lost and acquired again is out of date."""
    size: int
    """Of the message, computed once."""


@dataclass(slots=True)
class Round:
    """The messages of one round of fetches, by what the relay does with them."""

    now: float
    held_back: Collection[tuple[int, str]]
    """Positions of messages that wait for an earlier one of their key."""
    placed: int = 0
    stay: int = 0
    """Messages whose rows the database rejected."""
    splits: list[Split] = field(default_factory=list)
    waiting: list[Resolved] = field(default_factory=list)
    parked: list[Resolved] = field(default_factory=list)
    quarantined: Item | None = None
    stopped: set[QueueKey] = field(default_factory=set)
    """Queues of which a message waits: the rest of this round waits for it."""
    left: set[QueueKey] = field(default_factory=set)
    """Queues whose next message stays in the table as it is: the rest of this round is fetched again."""
    allowances: dict[str, int] = field(default_factory=dict)
    """How many more each destination takes now."""
    available: list[str] | None = None
    """Up to two available destinations; asked for once per round."""

    @property
    def done(self) -> int:
        """How many messages were put in flight, or will be held, split or settled."""
        return self.placed + len(self.splits) + len(self.waiting) + len(self.parked)


class Placer:
    """Puts messages in flight, and writes the outcomes of the others."""

    def __init__(self, context: RelayContext, settlement: Settlement, budget: ByteBudget) -> None:
        self._context = context
        self._settlement = settlement
        self._budget = budget
        self._destinations = context.destinations
        self._in_flight = context.in_flight
        self._barrier = context.barrier
        self._crash_guard = context.crash_guard
        self._share = max(1, context.config.max_in_flight // 4)
        self._retried_until = 0.0
        """When every message without a route was retried, at their rate."""

    async def place(
        self, waiting: list[FetchedMessage], ready: list[FetchedMessage], frontier: dict[int, float]
    ) -> Round | None:
        """Place what the fetches of one round brought: `ready` messages and those that were not (`waiting`). frontier:
        see `_in_their_turn`. None if there is nothing to place, or the relay drains."""
        if not (waiting or ready) or self._context.lifecycle.draining:
            return None
        held_back = await self._held_back([one for one in waiting + ready if one.message.must_wait])
        fetched = self._in_their_turn(waiting, frontier, held_back) + ready
        fetched.sort(key=_by_sequence)
        fitting = self._budget.fitting(fetched)
        self._fetch_again(fetched[fitting:])
        round = self._place_in_order(fetched[:fitting], held_back)
        round.stay = await self._write(round)
        # Nothing else brings what stays where it is, such as a second message in quarantine.
        in_flight = self._in_flight.positions
        self._fetch_again([one for one in fetched[:fitting] if one.waited and one.message.position not in in_flight])
        return round

    async def _held_back(self, fetched: Sequence[FetchedMessage]) -> set[tuple[int, str]]:
        """Which of those that the fetch flagged wait for an earlier one: the flag is exact for messages with a
        destination; the others are queried again with their destination."""
        held_back = {one.message.position for one in fetched if one.message.destination}
        asked = [
            one
            for one in fetched
            if not one.message.destination and one.message.key is not None and len(one.names) == 1
        ]
        if asked:
            queries = [EarlierQuery(m.lane, m.key or "", names[0], m.id) for m, names, *_ in asked]
            found = await self._context.store.messages.earlier(queries)
            held_back |= {one.message.position for one, has_earlier in zip(asked, found, strict=True) if has_earlier}
        return held_back

    def _in_their_turn(
        self, waiting: list[FetchedMessage], frontier: dict[int, float], held_back: Collection[tuple[int, str]]
    ) -> list[FetchedMessage]:
        """Those of `waiting` before which every ready message is in flight; the others are fetched again.

        What is not to be sent anyway, because it is held back or split, is moved out of the way at once: left there, it
        would fill one fetch after another, and a retry that is due would not be found behind it.
        """
        turn: list[FetchedMessage] = []
        later: list[FetchedMessage] = []
        for one in waiting:
            message = one.message
            comes = message.id < frontier.get(message.lane, -1) or message.position in held_back or len(one.names) > 1
            (turn if comes else later).append(one)
        self._fetch_again(later)
        return turn

    def _fetch_again(self, later: Sequence[FetchedMessage]) -> None:
        """These were fetched and not placed: schedule another fetch of those that are not ready."""
        waiting = [one.message for one in later if one.waited]
        if waiting:
            self._context.schedule.continue_queues(
                KeyQueue(m.lane, m.key, m.destination)
                for m in waiting
                if m.held == Held.WAITING.value and m.key is not None
            )
            self._context.schedule.due_within(0.05)

    def _place_in_order(self, fetched: Sequence[FetchedMessage], held_back: Collection[tuple[int, str]]) -> Round:
        round = Round(self._context.clock.monotonic(), held_back)
        epochs, in_flight = self._context.ownership.fetchable_epochs, self._in_flight.positions
        simple = self._is_simple(round)
        add = self._in_flight.add
        for message, names, fetch, waited, epoch, size in fetched:
            if epochs.get(message.lane) != epoch or (message.id, message.destination) in in_flight:
                continue
            if simple and len(names) == 1 and message.attempts == 0 and message.fault is None:
                # The usual case.
                item = Item(message, names[0], waited, round.now, size)
                if round.allowances.get(names[0], 0) > UNLIMITED_ALLOWANCE or (
                    not self._follows_probe(item, round) and self._takes_one_more(names[0], round)
                ):
                    add(item)
                    round.placed += 1
                    continue
            self._place_one(message, fetch, waited, names, round)
            simple = self._is_simple(round)
        return round

    def _is_simple(self, round: Round) -> bool:
        """Whether nothing keeps any message back: no queue is stopped, and no lane is in quarantine."""
        return (
            not round.held_back
            and not round.stopped
            and not round.left
            and self._barrier.inactive
            and self._crash_guard.inactive
        )

    def _place_one(self, message: Message, fetch: int, waited: bool, names: tuple[str, ...], round: Round) -> None:
        if len(names) > 1 and message.fault is None:
            # Copies keep their sequence, so any number of a key may be split at once, whatever comes before them.
            round.splits.append(Split(message, names))
            # A later fetch brings the copies: no later message of the key may overtake them.
            self._barrier.released(queue_of(message, ""))
        elif self._barrier.holds_back(message, names[0] if len(names) == 1 else "", fetch):
            return
        elif (fault := message.fault) is not None:
            self._settle_at_once(
                Item(message, message.destination, waited, round.now), Dead(error=fault, counted=False)
            )
            round.placed += 1
        elif not names:
            routing = self._context.routing
            limit = routing.max_by_type if routing.full else None
            outcome = no_route(
                message, self._context.rng, on_exhausted=self._context.config.on_exhausted, max_by_type=limit
            )
            self._settle_at_once(Item(message, message.destination, waited, round.now), self._paced(outcome, round.now))
            round.placed += 1
        else:
            self._place_routed(Item(message, names[0], waited, round.now), round)

    def _paced(self, outcome: Outcome, now: float) -> Outcome:
        """The decision on a message without a route, with a longer delay where there are many."""
        if not isinstance(outcome, Retry):
            return outcome
        self._retried_until = max(self._retried_until, now) + 1 / NO_ROUTE_RATE
        # In whole seconds: one fetch brings many.
        return replace(outcome, delay=max(outcome.delay, math.ceil(self._retried_until - now)))

    def _place_routed(self, item: Item, round: Round) -> None:
        message, queue = item.message, item.queue
        if queue in round.left:
            return
        # The flags come from two snapshots: whatever follows a stopped message in this round waits for it.
        if queue in round.stopped or item.position in round.held_back:
            round.stopped.add(queue)
            if message.held != Held.WAITING.value:
                round.waiting.append(Resolved(message, item.destination))
        elif self._crash_guard.is_exhausted(message):
            if (decision := self._crash_guard.decision(message)) is not None:
                self._settle_at_once(item, decision)
                round.placed += 1
            else:
                round.left.add(queue)
        elif self._follows_probe(item, round) or not self._takes_one_more(item.destination, round):
            self._park(item, round)
        elif self._crash_guard.quarantines(message):
            # One at a time: a crash hits whatever is in flight, and only the culprit is to be counted.
            if round.quarantined is None and not self._in_flight.has_quarantined():
                round.quarantined = item
                round.placed += 1
            round.left.add(queue)
        else:
            self._in_flight.add(item)
            round.placed += 1

    def _follows_probe(self, item: Item, round: Round) -> bool:
        """Whether an earlier message of its key is being sent to a destination that takes few: this one could only
        wait, and would occupy the place of one that can be sent."""
        if not self._in_flight.is_sending(item.queue):
            return False
        return self._state(item.destination).breaker.state(round.now) != "closed"

    def _takes_one_more(self, name: str, round: Round) -> bool:
        """Whether the destination takes one more, beyond those in flight that wait for it."""
        allowed = round.allowances.get(name)
        if allowed is None:
            allowed = self.allowance(self._state(name), round.now)
        round.allowances[name] = allowed - 1
        return allowed > 0

    def allowance(self, state: DestinationState, now: float) -> int:
        """How many more messages of a destination may be in flight."""
        name, allowed = state.endpoint.name, state.may_send(now)
        if 0 < allowed < UNLIMITED:
            allowed -= len(self._in_flight.unsent(name))
        if state.endpoint.transport.pace.capacity is not None and self._destinations.several:
            # A handler that is slow, or hangs, must not use up what may be in flight.
            allowed = min(allowed, self._share - self._in_flight.count(name))
        return allowed

    def _park(self, item: Item, round: Round) -> None:
        if item.message.held == Held.PARKED.value:
            round.stopped.add(item.queue)
        elif item.message.held == Held.WAITING.value and self._in_flight.has(item.queue):
            # An earlier one is in flight, and brings it again. Parked, it would be fetched again and again meanwhile.
            round.left.add(item.queue)
        elif self._others_available(item.destination, round):
            round.stopped.add(item.queue)
            round.parked.append(Resolved(item.message, item.destination))
            self._state(item.destination).parked = True
        else:
            # It stays in the table, and so do the later ones of its queue: no other message needs its share.
            round.left.add(item.queue)

    def _others_available(self, name: str, round: Round) -> bool:
        if round.available is None:
            round.available = self._destinations.some_available(2)
        return any(other != name for other in round.available)

    def _state(self, name: str) -> DestinationState:
        return self._destinations.of(self._context.routing.endpoint(name))

    def _settle_at_once(self, item: Item, outcome: Outcome) -> None:
        self._in_flight.keep(item)
        self._settlement.add(item, outcome)
        announce(self._context, item, outcome)

    # -- what is written -------------------------------------------------------------------------------------------

    async def _write(self, round: Round) -> int:
        """Write the messages to hold, split or settle; returns how many could not be written."""
        context, writes = self._context, self._context.store.writes
        epochs = context.ownership.epochs
        stay = 0
        if round.splits:
            stay += await self._unless_refused(epochs, writes.split(epochs, round.splits))
            for split in round.splits:
                self._barrier.released(queue_of(split.message, ""))
                context.statistics.count_split(split.destinations)
        if round.waiting:
            stay += await self._unless_refused(epochs, writes.hold(epochs, round.waiting, Held.WAITING))
            # The message that they wait for may be gone meanwhile: a fetch begun from here on knows.
            context.schedule.continue_queues(
                KeyQueue(m.lane, m.key, name) for m, name in round.waiting if m.key is not None
            )
        if round.quarantined is not None:
            counting = self._crash_guard.count_before_send(context, epochs, round.quarantined)
            stay += await self._unless_refused(epochs, counting)
        if round.parked:
            stay += await self._unless_refused(epochs, writes.hold(epochs, round.parked, Held.PARKED))
        return stay

    async def _unless_refused(self, epochs: Epochs, write: Awaitable[Settled]) -> int:
        """A message whose row the database rejects stays where it is until a later fetch; others continue.
        Returns how many were refused."""
        context = self._context
        try:
            written = await write
        except RowsRefusedError as error:
            context.announce(StoreFailed(relay=context.relay, error=str(error), delay=0.0))
            return len(error.positions)
        # Other relays own the lanes that a write reports as lost: to fetch from them again would never end.
        if dropped := context.ownership.lose(written.lost, epochs):
            context.announce(LanesLost(relay=context.relay, lanes=tuple(dropped)))
        return 0
