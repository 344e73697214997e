"""What the answer of a transport means for a message and for its destination.

`decide` is a pure function: whether to retry is decided there and nowhere else. When is the retry policy's arithmetic,
and only the store persists the decision.

    accepted           Delivered
    PermanentError     Dead
    RejectedError      Retry, counted as an attempt; Dead once the policy is exhausted
    NackedError        Retry, counted as a deferral
    UnavailableError   OUTAGE: the destination is unavailable, and no attempt is counted. Treated as a rejection where
                       outages are to count, and where the message alone failed while others of its batch were accepted
    no route           Retry, counted as a deferral, for about an hour; then Dead
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Final, assert_never

from pillarbox.core.clock import Chance
from pillarbox.core.errors import NackedError, PermanentError, RejectedError, SendError, UnavailableError, primary_text
from pillarbox.core.message import Message
from pillarbox.core.observations import BatchDelivered, EventDeadLettered, EventRetried, Sending, SendOverdue
from pillarbox.core.outcome import DELIVERED, Dead, Delivered, Outcome, Retry, legible
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.transport import Result
from pillarbox.relay.config import OnExhausted, Outages

if TYPE_CHECKING:
    from pillarbox.relay.breaker import DestinationState
    from pillarbox.relay.in_flight import Item, QueueKey
    from pillarbox.relay.settle import Settlement
    from pillarbox.relay.supervisor import RelayContext


class Outage(Enum):
    """No decision on the message: its destination is unavailable."""

    OUTAGE = "outage"


OUTAGE: Final = Outage.OUTAGE

_NACKED = ExponentialBackoff(base="1s", max="60s", jitter="full", max_attempts=0)

_NO_ROUTE = ExponentialBackoff(base="1s", max="60s", jitter="none", max_attempts=66)  # 65 waits


def decide(
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
    """What becomes of `message` after `result`. `alone`: the same destination accepted others of its batch;
    `overtaken`: among them a later one of its own key, so that this one was refused and no connection was lost."""
    match result:
        case None:
            return DELIVERED
        case PermanentError():
            return Dead(error=error_text(result), block=on_exhausted == "block")
        case NackedError():
            return Retry(
                delay=_NACKED.delay(message.deferrals + 1, chance) or 0, error=error_text(result), counted=False
            )
        case UnavailableError() if overtaken:
            return Retry(
                delay=_NACKED.delay(message.deferrals + 1, chance) or 0, error=error_text(result), counted=False
            )
        case UnavailableError() if outages == "wait" and not alone:
            return OUTAGE
        case SendError():
            delay = policy.delay(message.attempts + 1, chance)
            if delay is None:
                return Dead(error=error_text(result), block=on_exhausted == "block")
            return Retry(delay=delay, error=error_text(result))


def no_route(
    message: Message, chance: Chance, *, on_exhausted: OnExhausted, most_by_type: int | None = None
) -> Outcome:
    """What becomes of a message that matches no route: a rolling deployment may know its type later.

    Its deferrals are counted, not timed, so no clock matters. `most_by_type`: event types have created as many
    destinations as `relay.max_destinations` allows, and this would have been one more.
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
    delay = _NO_ROUTE.delay(message.deferrals + 1, chance)
    if delay is None:
        return Dead(error=error, block=on_exhausted == "block", counted=False)
    return Retry(delay=delay, error=error, counted=False)


def error_text(error: BaseException) -> str:
    """`error` for operators: its type and text, legible and bounded. Never raises."""
    name = type(error).__name__
    try:
        said = primary_text(error)
    except Exception as unspeakable:
        said = f"(its text cannot be had: {type(unspeakable).__name__})"
    return legible(f"{name}: {said}" if said else name)


def at_fault(transport: object, error: Exception) -> UnavailableError:
    """The transport raised what is no send error. What it sent is unknown, so the relay retries: nothing is lost."""
    return UnavailableError(f"{type(transport).__name__} is at fault: {error_text(error)}")


class Decider:
    """Turns answers into outcomes, which the settlement writes, and into the state of destinations."""

    def __init__(self, context: RelayContext, settlement: Settlement) -> None:
        self._context = context
        self._settlement = settlement
        self._destinations = context.destinations
        self._in_flight = context.in_flight
        self._clock = context.clock

    def answered(self, batch: Sequence[tuple[DestinationState, Item]], results: Sequence[Result]) -> None:
        """Decide on a batch by what the transport answered to each message."""
        by_state: defaultdict[DestinationState, list[tuple[Item, Result]]] = defaultdict(list)
        if results.count(None) == len(results):
            for state, accepted in _by_state(batch):
                self._all_accepted(state, accepted)
            return
        for (state, item), result in zip(batch, results, strict=True):
            by_state[state].append((item, result))
        for state, answers in by_state.items():
            self._decide_one(state, answers)

    def answered_apart(self, answers: Sequence[tuple[tuple[DestinationState, Item], Result]]) -> None:
        """Decide on each message by itself, in order; on a run that one destination accepted at once."""
        for (state, accepted), run in groupby(answers, key=lambda answer: (answer[0][0], answer[1] is None)):
            if accepted:
                self._all_accepted(state, [item for (_, item), _ in run])
            else:
                for (_, item), result in run:
                    self._decide_one(state, [(item, result)])
        self._context.wakeups.send()

    def _all_accepted(self, state: DestinationState, items: list[Item]) -> None:
        """The usual case: as `_decide_one` would decide, for all of them at once."""
        current = self._in_flight.accepted(items)
        self._settlement.delivered(current)
        announce_delivered(self._context, current)
        self._destinations.accepted(self._destinations.of(state.endpoint))

    def _decide_one(self, state: DestinationState, answers: list[tuple[Item, Result]]) -> None:
        # A state is dropped once nothing is in flight to its destination, as after its lanes were lost.
        state = self._destinations.of(state.endpoint)
        passed = any(result is None for _, result in answers)
        cut_off = sum(
            isinstance(result, UnavailableError) and not isinstance(result, NackedError) for _, result in answers
        )
        overtaken = _overtaken(answers) if passed and cut_off else ()
        outage: str | None = None
        noted: list[Item] = []
        for item, result in answers:
            if not self._in_flight.sends(item):
                # From before its lane was lost, perhaps taken back since: it tells about the destination only.
                continue
            # Alone among neighbours that passed, and not for the first time, it is the message: a connection that
            # broke on the last one of a batch looks the same once.
            outcome = decide(
                # What was written before the send is not to be counted twice.
                item.message._replace(attempts=item.message.attempts - 1) if item.noted else item.message,
                result,
                policy=self._context.retry,
                chance=self._context.chance,
                on_exhausted=self._context.config.on_exhausted,
                outages=self._context.config.outages,
                alone=passed and cut_off == 1 and item.message.deferrals > 0,
                overtaken=item in overtaken,
            )
            if outcome is OUTAGE:
                outage = error_text(result) if result is not None else ""
                self._settlement.defer(item, outage, self._in_flight.stopped(item))
                noted.append(item)
            else:
                self.settle(item, outcome)
        if passed:
            self._destinations.accepted(state)
        elif outage is not None:
            first = state.is_healthy
            self.close(state, outage)
            # Announce every failed send; the log has one line per event when an outage begins, then one per probe.
            for item in noted:
                delay = state.breaker.next_attempt(self._clock.monotonic())
                announce(self._context, item, Retry(delay=delay, error=outage, counted=False), probe=not first)
        else:
            self._all_refused(state, answers)

    def _all_refused(self, state: DestinationState, answers: list[tuple[Item, Result]]) -> None:
        nacks = [result for _, result in answers if isinstance(result, NackedError)]
        rejected = [(item, result) for item, result in answers if isinstance(result, RejectedError)]
        if nacks:
            # A full queue: every message is deferred by itself, and the destination is unavailable.
            self._destinations.unavailable(state, error_text(nacks[-1]), at_fault=True)
        elif rejected:
            self._destinations.rejected(
                state, [item.message.event_id for item, _ in rejected], error_text(rejected[-1][1])
            )
        elif outages := [result for _, result in answers if isinstance(result, UnavailableError)]:
            # Outages count as attempts: they open no breaker, but the destination is shown as failing.
            error = error_text(outages[-1])
            if state.breaker.state(self._clock.monotonic()) == "closed":
                self._destinations.failing(state, error)
            else:
                self._destinations.unavailable(state, error)

    def close(self, state: DestinationState, error: str, *, at_fault: bool = False) -> None:
        """The destination is unavailable: release the messages that wait for it, so that others can be in flight."""
        self._destinations.unavailable(state, error, at_fault=at_fault)
        self._context.release(self._in_flight.unsent(state.endpoint.name))

    def overdue(self, batch: Iterable[tuple[DestinationState, Item]], limit: float) -> None:
        """Sends that hang keep their keys and what they occupy; their destination is unavailable for now."""
        context = self._context
        for state, item in [(self._destinations.of(state.endpoint), item) for state, item in batch]:
            message = item.message
            context.announce(
                SendOverdue(relay=context.relay, message=message, destination=item.destination, seconds=limit)
            )
            error = f"no answer to event {message.event_id} after {limit:g} s; its key waits for it"
            self.close(state, error, at_fault=True)

    def settle(self, item: Item, outcome: Outcome) -> None:
        """Decide on a message: its settlement writes the outcome."""
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
                assert_never(outcome)
        announce(self._context, item, outcome)
        self._context.wakeups.send()


def _by_state(batch: Sequence[tuple[DestinationState, Item]]) -> Iterable[tuple[DestinationState, list[Item]]]:
    states = [state for state, _ in batch]
    if states and states.count(states[0]) == len(states):  # as in most batches
        return [(states[0], [item for _, item in batch])]
    items: defaultdict[DestinationState, list[Item]] = defaultdict(list)
    for state, item in batch:
        items[state].append(item)
    return items.items()


def _overtaken(answers: Sequence[tuple[Item, Result]]) -> set[Item]:
    """Messages that failed although a later one of their key was accepted: a lost connection would have failed that
    one, too."""
    found: set[Item] = set()
    accepted: set[QueueKey] = set()
    for item, result in reversed(answers):
        if result is None:
            accepted.add(item.queue)
        elif isinstance(result, UnavailableError) and item.queue in accepted:
            found.add(item)
    return found


def announce_delivered(context: RelayContext, items: Sequence[Item]) -> None:
    """Announce that `items`, sent together to one destination, were delivered; free without observers."""
    if context.announce.observers and items:
        context.announce.delivered(
            BatchDelivered(
                relay=context.relay,
                destination=items[0].destination,
                messages=tuple([item.message for item in items]),
                seconds=items[0].took or 0.0,
            )
        )


def announce_sending(context: RelayContext, batch: Iterable[tuple[DestinationState, Item]]) -> None:
    """Announce that the relay is about to send a batch; free without observers."""
    if context.announce.observers:
        by_name: defaultdict[str, list[Message]] = defaultdict(list)
        for state, item in batch:
            by_name[state.endpoint.name].append(item.message)
        for name, messages in by_name.items():
            context.announce(Sending(relay=context.relay, destination=name, messages=tuple(messages)))


def announce(context: RelayContext, item: Item, outcome: Outcome, *, probe: bool = False) -> None:
    """Announce what becomes of `item`; free without observers. probe: see `EventRetried`."""
    if not context.announce.observers:
        return
    message, destination, took = item.message, item.destination, item.took or 0.0
    match outcome:
        case Delivered():
            announce_delivered(context, [item])
        case Retry(delay=delay, error=error, counted=counted):
            context.announce(
                EventRetried(
                    relay=context.relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    delay=delay,
                    counted=counted,
                    seconds=took,
                    probe=probe,
                )
            )
        case Dead(error=error, block=block):
            context.announce(
                EventDeadLettered(
                    relay=context.relay,
                    message=message,
                    destination=destination,
                    error=error,
                    attempt=item.attempt,
                    blocks=block,
                    seconds=took,
                )
            )
        case _:
            assert_never(outcome)
