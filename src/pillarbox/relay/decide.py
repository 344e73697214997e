"""What an answer means for a message: a pure decision. Whether to try again is decided here and nowhere else; when is
the retry policy's arithmetic; only the store remembers it.

    accepted           Delivered
    PermanentError     Dead
    RejectedError      Retry, charged; Dead once the policy gives up
    NackedError        Retry, never charged
    UnavailableError   OUTAGE: the destination is at fault; nothing is charged. Counted as a rejection where outages
                       are to count, and where the message alone failed while its neighbours passed
    no route           Retry, uncharged, for about an hour; then Dead
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import NackedError, PermanentError, RejectedError, SendError, UnavailableError, primary_text
from pillarbox.core.message import Message, Slot
from pillarbox.core.observations import Announcer, BatchDelivered, EventDeadLettered, EventRetried
from pillarbox.core.outcome import DELIVERED, Dead, Delivered, Outcome, Retry, legible
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.transport import Result
from pillarbox.relay.config import OnExhausted, Outages, RelayConfig
from pillarbox.relay.destinations import Gate, Gates
from pillarbox.relay.in_flight import InFlight, Item, QueueKey

if TYPE_CHECKING:
    from pillarbox.relay.admission import Stops
    from pillarbox.relay.settle import Settlement


class Decider:
    """From answers to outcomes, which the settlement writes, and to the state of destinations."""

    def __init__(
        self,
        *,
        relay: str,
        gates: Gates,
        in_flight: InFlight,
        stops: Stops,
        settlement: Settlement,
        policy: RetryPolicy,
        config: RelayConfig,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._gates = gates
        self._in_flight = in_flight
        self._stops = stops
        self._settlement = settlement
        self._policy = policy
        self._config = config
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self.on_decided: Callable[[], None] = lambda: None
        """Told when the next message of a key may go."""
        self.on_let_go: Callable[[list[Slot]], None] = lambda _: None
        """Told when messages were given back as they were, with the keys and destinations of those that had waited:
        fetch them again."""

    def decide(self, batch: Sequence[tuple[Gate, Item]], results: Sequence[Result]) -> None:
        """Decide on a batch by what the transport answered to each message."""
        by_gate: defaultdict[Gate, list[tuple[Item, Result]]] = defaultdict(list)
        if results.count(None) == len(results):
            for gate, accepted in _by_gate(batch):
                self._all_accepted(gate, accepted)
            return
        for (gate, item), result in zip(batch, results, strict=True):
            by_gate[gate].append((item, result))
        for gate, answers in by_gate.items():
            self._decide_one(gate, answers)

    def decide_apart(self, answers: Sequence[tuple[tuple[Gate, Item], Result]]) -> None:
        """Each by itself, in their order; those accepted one after another by the same destination at once."""
        for (gate, accepted), run in groupby(answers, key=lambda answer: (answer[0][0], answer[1] is None)):
            if accepted:
                self._all_accepted(gate, [item for (_, item), _ in run])
            else:
                for (_, item), result in run:
                    self._decide_one(gate, [(item, result)])
        self.on_decided()

    def _all_accepted(self, gate: Gate, items: list[Item]) -> None:
        """What most answers are: as `_decide_one` would decide, for all of them at once."""
        current = self._in_flight.accepted(items)
        self._settlement.delivered(current)
        tell_delivered(self._announce, self.relay, current)
        self._gates.accepted(self._gates.of(gate.place))

    def _decide_one(self, gate: Gate, answers: list[tuple[Item, Result]]) -> None:
        # A gate is forgotten once nothing is in flight to it, as after its lanes were lost.
        gate = self._gates.of(gate.place)
        passed = any(result is None for _, result in answers)
        cut_off = sum(
            isinstance(result, UnavailableError) and not isinstance(result, NackedError) for _, result in answers
        )
        overtaken = _overtaken(answers) if passed and cut_off else ()
        outage: str | None = None
        noted: list[Item] = []
        for item, result in answers:
            if not self._in_flight.sends(item):
                # From before its lane was lost, perhaps taken back since: it says something of the destination only.
                continue
            # Alone among neighbours that passed, and not for the first time, it is the message: a connection that
            # broke on the last one of a batch looks the same once.
            outcome = judge(
                # What was written before the send is not to be counted twice.
                item.message._replace(attempts=item.message.attempts - 1) if item.noted else item.message,
                result,
                policy=self._policy,
                chance=self._chance,
                on_exhausted=self._config.on_exhausted,
                outages=self._config.outages,
                alone=passed and cut_off == 1 and item.message.tries > 0,
                overtaken=item in overtaken,
            )
            if outcome is OUTAGE:
                outage = error_text(result) if result is not None else ""
                self._settlement.note(item, outage, self._in_flight.stopped(item))
                noted.append(item)
            else:
                self.settle(item, outcome, result)
        if passed:
            self._gates.accepted(gate)
        elif outage is not None:
            first = gate.well
            self.close(gate, outage)
            # Every failed send counts; one line per event when an outage begins, then one per probe.
            for item in noted:
                delay = gate.breaker.next_try(self._clock.monotonic())
                tell(self._announce, self.relay, item, Retry(delay=delay, error=outage, charge=False), probe=not first)
        else:
            self._all_refused(gate, answers)

    def _all_refused(self, gate: Gate, answers: list[tuple[Item, Result]]) -> None:
        nacks = [result for _, result in answers if isinstance(result, NackedError)]
        rejected = [(item, result) for item, result in answers if isinstance(result, RejectedError)]
        if nacks:
            # A full queue: every message waits by itself, and so does the destination.
            self._gates.unavailable(gate, error_text(nacks[-1]), at_fault=True)
        elif rejected:
            self._gates.rejected(gate, [item.message.event_id for item, _ in rejected], error_text(rejected[-1][1]))
        elif outages := [result for _, result in answers if isinstance(result, UnavailableError)]:
            # Outages count as attempts: they close no destination, but everybody is to see that it fails.
            error = error_text(outages[-1])
            if gate.breaker.state(self._clock.monotonic()) == "closed":
                self._gates.failing(gate, error)
            else:
                self._gates.unavailable(gate, error)

    def close(self, gate: Gate, error: str, *, at_fault: bool = False) -> None:
        """It takes nothing now: let go of what waits for it, so that others find room."""
        self._gates.unavailable(gate, error, at_fault=at_fault)
        self.let_go(self._in_flight.unsent(gate.place.name))

    def let_go(self, items: Sequence[Item]) -> None:
        """Give messages back as they were; nothing is written."""
        if not items:
            return
        for item in items:
            self._stops.let_go(item.queue)
        self._in_flight.forget(items)
        self.on_let_go([slot for item in items if item.waited and (slot := item.slot) is not None])

    def settle(self, item: Item, outcome: Outcome, result: Result = None) -> None:
        """Have this outcome of a message written."""
        if item.noted and isinstance(outcome, Retry | Dead):
            outcome = replace(outcome, noted=True)
        match outcome:
            case Delivered():
                self._in_flight.confirmed(item)
                self._settlement.add(item, outcome)
            case Retry() | Dead(block=True):
                self._settlement.add(item, outcome, self._in_flight.stopped(item))
            case Dead():
                self._in_flight.confirmed(item)
                self._settlement.add(item, outcome)
            case _:
                raise AssertionError(f"{outcome} is no answer to {result}")
        tell(self._announce, self.relay, item, outcome)
        self.on_decided()


def _by_gate(batch: Sequence[tuple[Gate, Item]]) -> Iterable[tuple[Gate, list[Item]]]:
    gates = [gate for gate, _ in batch]
    if gates and gates.count(gates[0]) == len(gates):  # as in most batches
        return [(gates[0], [item for _, item in batch])]
    items: defaultdict[Gate, list[Item]] = defaultdict(list)
    for gate, item in batch:
        items[gate].append(item)
    return items.items()


def _overtaken(answers: Sequence[tuple[Item, Result]]) -> set[Item]:
    """Those that were cut off although a later message of their key was accepted: a lost connection would have cut off
    that one, too."""
    found: set[Item] = set()
    accepted: set[QueueKey] = set()
    for item, result in reversed(answers):
        if result is None:
            accepted.add(item.queue)
        elif isinstance(result, UnavailableError) and item.queue in accepted:
            found.add(item)
    return found


class Outage(Enum):
    """No verdict on the message: its destination takes nothing now."""

    OUTAGE = "outage"


OUTAGE: Final = Outage.OUTAGE

_NACKED = ExponentialBackoff(base="1s", max="60s", jitter="full", max_attempts=0)

_NO_ROUTE = ExponentialBackoff(base="1s", max="60s", jitter="none", max_attempts=66)  # 65 waits


def judge(
    message: Message,
    result: Result,
    *,
    policy: RetryPolicy,
    chance: Chance,
    on_exhausted: OnExhausted,
    outages: Outages,
    alone: bool,
    overtaken: bool = False,
) -> Outcome | Outage:
    """What becomes of `message` after `result`. `alone`: others of its lot were accepted by the same destination;
    `overtaken`: among them a later one of its own key, so that this one was refused, and nothing was cut off."""
    match result:
        case None:
            return DELIVERED
        case PermanentError():
            return Dead(error=error_text(result), block=on_exhausted == "block")
        case NackedError():
            return Retry(delay=_NACKED.delay(message.tries + 1, chance) or 0, error=error_text(result), charge=False)
        case UnavailableError() if overtaken:
            return Retry(delay=_NACKED.delay(message.tries + 1, chance) or 0, error=error_text(result), charge=False)
        case UnavailableError() if outages == "wait" and not alone:
            return OUTAGE
        case SendError():
            delay = policy.delay(message.attempts + 1, chance)
            if delay is None:
                return Dead(error=error_text(result), block=on_exhausted == "block")
            return Retry(delay=delay, error=error_text(result))


def no_route(
    message: Message, chance: Chance, *, on_exhausted: OnExhausted = "skip", most_by_type: int | None = None
) -> Outcome:
    """What becomes of a message that no route fits: a rolling deployment may know its type later.

    Its uncharged tries are counted, not timed: no clock of anybody's is asked. `most_by_type`: event types have made as
    many destinations as they may, and this would have been one more.
    """
    error = f"no route for {message.event_type!r}"
    if message.aggregate_type is not None:
        error += f" of {message.aggregate_type!r}"
    if message.destination:
        error = f"the destination {message.destination!r} is not known here"
    todo = "add it, or discard the event"
    if most_by_type is not None:
        todo = (
            f"event types have made {most_by_type} destinations already, which is relay.max_destinations: add routes, "
            "raise the bound, or discard the event"
        )
    error = legible(f"{error}; {todo}")
    delay = _NO_ROUTE.delay(message.tries + 1, chance)
    if delay is None:
        return Dead(error=error, block=on_exhausted == "block", charge=False)
    return Retry(delay=delay, error=error, charge=False)


def error_text(error: BaseException) -> str:
    """`error` for people: its type and what it says, legible and bounded. Never raises."""
    name = type(error).__name__
    try:
        said = primary_text(error)
    except Exception as unspeakable:
        said = f"(its text cannot be had: {type(unspeakable).__name__})"
    return legible(f"{name}: {said}" if said else name)


def tell_delivered(announce: Announcer, relay: str, items: Sequence[Item]) -> None:
    """Announce that `items`, sent together to one destination, were delivered; costs nothing when nobody listens."""
    if announce.observers and items:
        announce.delivered(
            BatchDelivered(
                relay=relay,
                destination=items[0].destination,
                messages=tuple([item.message for item in items]),
                seconds=items[0].took or 0.0,
            )
        )


def tell(announce: Announcer, relay: str, item: Item, outcome: Outcome, *, probe: bool = False) -> None:
    """Announce what becomes of `item`; costs nothing when nobody listens. probe: see `EventRetried`."""
    if not announce.observers:
        return
    message, destination, took = item.message, item.destination, item.took or 0.0
    match outcome:
        case Delivered():
            tell_delivered(announce, relay, [item])
        case Retry(delay=delay, error=error, charge=charge):
            announce(
                EventRetried(
                    relay=relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    delay=delay,
                    counted=charge,
                    seconds=took,
                    probe=probe,
                )
            )
        case Dead(error=error, block=block):
            announce(
                EventDeadLettered(
                    relay=relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    blocks=block,
                    seconds=took,
                )
            )
        case _:
            raise AssertionError(f"{outcome} is nothing to tell")
