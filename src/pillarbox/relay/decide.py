"""What the result of a send means for a message and for its destination.

`decide` is a pure function: whether to retry is decided there and nowhere else. The retry policy computes the
delay, and only the store persists the decision.

    accepted           Delivered
    PermanentError     Dead
    RejectedError      Retry, counted as an attempt; Dead once the policy is exhausted
    NackedError        Retry, counted as a deferral
    UnavailableError   OUTAGE: the destination is unavailable, and no attempt is counted. Treated as a rejection where
                       outages are to count, and where the message alone failed while others of its batch were accepted
    GoneError          OUTAGE, always; the destination is paused until an operator resumes it
    no route           Retry, counted as a deferral, for about an hour; then Dead
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Final, assert_never

from pillarbox.core.clock import RandomSource
from pillarbox.core.errors import (
    GoneError,
    NackedError,
    PermanentError,
    RejectedError,
    SendError,
    UnavailableError,
)
from pillarbox.core.message import Message
from pillarbox.core.observations import BatchDelivered, EventDeadLettered, EventRetried, Sending, SendOverdue
from pillarbox.core.outcome import DELIVERED, MAX_DELAY, Dead, Delivered, Outcome, Retry, error_text, sanitize_error
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.transport import Address, SendResult
from pillarbox.relay.config import OnExhausted, Outages
from pillarbox.relay.in_flight import Item, overtaken_items
from pillarbox.retry_policies import ExponentialBackoff

if TYPE_CHECKING:
    from pillarbox.relay.destination_state import DestinationState
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.settle import Settlement


class Outage(Enum):
    """No decision on the message: its destination is unavailable."""

    OUTAGE = "outage"


OUTAGE: Final = Outage.OUTAGE

_NACKED = ExponentialBackoff(base="1s", max_delay="60s", jitter="full", max_attempts="unlimited")

_NO_ROUTE = ExponentialBackoff(base="1s", max_delay="60s", jitter="none", max_attempts=66)  # 65 waits


def decide(
    message: Message,
    result: SendResult,
    *,
    policy: RetryPolicy,
    rng: RandomSource,
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
        case GoneError():
            return OUTAGE
        case UnavailableError() if overtaken or isinstance(result, NackedError):
            wait = max(_NACKED.delay_after(message.deferrals + 1, rng) or 0, _asked_wait(result))
            return Retry(delay=wait, error=error_text(result), counted=False)
        case UnavailableError() if outages == "wait" and not alone:
            return OUTAGE
        case SendError():
            delay = policy.delay_after(message.attempts + 1, rng)
            if delay is None:
                return Dead(error=error_text(result), block=on_exhausted == "block")
            return Retry(delay=max(delay, _asked_wait(result)), error=error_text(result))


def _asked_wait(result: SendResult) -> float:
    """Seconds that the destination asked to wait; 0: it did not."""
    return min((result.retry_after or 0.0) if isinstance(result, UnavailableError) else 0.0, MAX_DELAY)


def no_route(
    message: Message, rng: RandomSource, *, on_exhausted: OnExhausted, max_by_type: int | None = None
) -> Outcome:
    """What becomes of a message that matches no route: a rolling deployment may know its type later.

    Its deferrals are counted, not timed, so no clock matters. `max_by_type`: event types have created as many
    destinations as `relay.max_destinations` allows, and this would have been one more.
    """
    error = f"no route for {message.event_type!r}"
    if message.aggregate_type is not None:
        error += f" of {message.aggregate_type!r}"
    if message.destination:
        error = f"the destination {message.destination!r} is not configured on this relay"
    todo = "add it, or discard the event"
    if max_by_type is not None:
        todo = (
            f"event types have created {max_by_type} destinations, which is relay.max_destinations: add routes, "
            "raise the limit, or discard the event"
        )
    error = sanitize_error(f"{error}; {todo}")
    delay = _NO_ROUTE.delay_after(message.deferrals + 1, rng)
    if delay is None:
        return Dead(error=error, block=on_exhausted == "block", counted=False)
    return Retry(delay=delay, error=error, counted=False)


def at_fault(transport: object, error: BaseException) -> UnavailableError:
    """The transport raised what is not a send error. What it sent is unknown, so the relay retries: nothing is lost."""
    return UnavailableError(f"transport {type(transport).__name__} raised an unexpected error: {error_text(error)}")


class Decider:
    """Turns results into outcomes, which the settlement writes, and into the state of destinations."""

    def __init__(self, context: RelayContext, settlement: Settlement) -> None:
        self._context = context
        self._settlement = settlement
        self._destinations = context.destinations
        self._in_flight = context.in_flight
        self._clock = context.clock

    def decide_batch(self, batch: Sequence[tuple[DestinationState, Item]], results: Sequence[SendResult]) -> None:
        """Decide on a batch by the result of each message."""
        by_state: defaultdict[DestinationState, list[tuple[Item, SendResult]]] = defaultdict(list)
        if results.count(None) == len(results):
            for state, accepted in _by_state(batch):
                self._all_accepted(state, accepted)
            return
        for (state, item), result in zip(batch, results, strict=True):
            by_state[state].append((item, result))
        for state, own in by_state.items():
            self._decide_one(state, own)

    def decide_each(self, results: Sequence[tuple[tuple[DestinationState, Item], SendResult]]) -> None:
        """Decide on each message by itself, in order; on a run that one destination accepted at once."""
        for (state, accepted), run in groupby(results, key=lambda result: (result[0][0], result[1] is None)):
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
        announce_delivered(self._context, current, state.endpoint.destination.address)
        self._destinations.accepted(self._destinations.of(state.endpoint))

    def _decide_one(self, state: DestinationState, results: list[tuple[Item, SendResult]]) -> None:
        # A state is dropped once nothing is in flight to its destination, as after its lanes were lost.
        state = self._destinations.of(state.endpoint)
        passed = any(result is None for _, result in results)
        cut_off = sum(
            isinstance(result, UnavailableError) and not isinstance(result, NackedError) for _, result in results
        )
        overtaken = overtaken_items(results) if passed and cut_off else ()
        outage: str | None = None
        deferred: list[Item] = []
        address = state.endpoint.destination.address
        for item, result in results:
            if not self._in_flight.sends(item):
                # From before its lane was lost, perhaps taken back since: it tells about the destination only.
                continue
            # If only this message fails repeatedly, the message is the cause. Once is not enough: a connection that
            # broke on the last message of a batch looks the same.
            outcome = decide(
                # What was written before the send is not to be counted twice.
                item.message._replace(attempts=item.message.attempts - 1) if item.counted_before_send else item.message,
                result,
                policy=self._context.retry,
                rng=self._context.rng,
                on_exhausted=self._context.config.on_exhausted,
                outages=self._context.config.outages,
                alone=passed and cut_off == 1 and item.message.deferrals > 0,
                overtaken=item in overtaken,
            )
            if outcome is OUTAGE:
                outage = error_text(result) if result is not None else ""
                self._settlement.defer(item, outage, self._in_flight.stopped(item))
                deferred.append(item)
            else:
                self.settle(item, outcome, address)
        asked = max(_asked_wait(result) for _, result in results)
        gone = any(isinstance(result, GoneError) for _, result in results)
        if passed and (outage is None or not (asked or gone)):
            self._destinations.accepted(state)
        elif outage is not None:
            first = state.is_healthy
            # What a destination says of itself concerns no other one.
            self.mark_unavailable(state, outage, at_fault=gone or asked > 0, retry_after=asked)
            if gone:
                self._destinations.gone(state)
            # Announce every failed send; the log has one line per event when an outage begins, then one per probe.
            for item in deferred:
                failed = Retry(delay=state.breaker.next_attempt(self._clock.monotonic()), error=outage, counted=False)
                announce(self._context, item, failed, address, probe=not first)
        elif told := [one for one in results if not (isinstance(one[1], NackedError) and one[1].alone)]:
            self._all_refused(state, told)
        elif any(item.is_probe for item, _ in results):
            state.breaker.probe_ended()  # it told nothing about other messages: the next one is the probe

    def _all_refused(self, state: DestinationState, results: list[tuple[Item, SendResult]]) -> None:
        nacks = [result for _, result in results if isinstance(result, NackedError)]
        rejected = [(item, result) for item, result in results if isinstance(result, RejectedError)]
        if nacks:
            # A full queue: every message is deferred by itself, and the destination is unavailable.
            self._destinations.unavailable(state, error_text(nacks[-1]), at_fault=True)
        elif rejected:
            self._destinations.rejected(
                state, [item.message.event_id for item, _ in rejected], error_text(rejected[-1][1])
            )
        elif outages := [result for _, result in results if isinstance(result, UnavailableError)]:
            # Outages count as attempts: they open no breaker, but the destination is shown as failing.
            error = error_text(outages[-1])
            if state.breaker.state(self._clock.monotonic()) == "closed":
                self._destinations.failing(state, error)
            else:
                self._destinations.unavailable(state, error)

    def mark_unavailable(
        self, state: DestinationState, error: str, *, at_fault: bool = False, retry_after: float = 0.0
    ) -> None:
        """The destination is unavailable: release the messages that wait for it, so that others can be in flight."""
        self._destinations.unavailable(state, error, at_fault=at_fault, retry_after=retry_after)
        self._context.release(self._in_flight.unsent(state.endpoint.name))

    def overdue(self, batch: Iterable[tuple[DestinationState, Item]], limit: float) -> None:
        """Sends that hang keep their keys and what they occupy; their destination is unavailable for now."""
        context = self._context
        for state, item in [(self._destinations.of(state.endpoint), item) for state, item in batch]:
            message = item.message
            context.announce(
                SendOverdue(relay=context.relay, message=message, destination=item.destination, seconds=limit)
            )
            error = f"no result for event {message.event_id} after {limit:g} s; later events of its key are waiting"
            self.mark_unavailable(state, error, at_fault=True)

    def settle(self, item: Item, outcome: Outcome, address: Address | None = None) -> None:
        """Decide on a message: its settlement writes the outcome. `address`: where it was sent."""
        if item.counted_before_send and isinstance(outcome, Retry | Dead):
            outcome = replace(outcome, counted_before_send=True)
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
        announce(self._context, item, outcome, address)
        self._context.wakeups.send()


def _by_state(batch: Sequence[tuple[DestinationState, Item]]) -> Iterable[tuple[DestinationState, list[Item]]]:
    states = [state for state, _ in batch]
    if states and states.count(states[0]) == len(states):  # as in most batches
        return [(states[0], [item for _, item in batch])]
    items: defaultdict[DestinationState, list[Item]] = defaultdict(list)
    for state, item in batch:
        items[state].append(item)
    return items.items()


def announce_delivered(context: RelayContext, items: Sequence[Item], address: Address | None) -> None:
    """Announce that `items`, sent together to one destination, were delivered; free without observers."""
    if context.announce.observers and items:
        context.announce.delivered(
            BatchDelivered(
                relay=context.relay,
                destination=items[0].destination,
                messages=tuple([item.message for item in items]),
                seconds=items[0].took or 0.0,
                address=address,
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


def announce(
    context: RelayContext, item: Item, outcome: Outcome, address: Address | None = None, *, probe: bool = False
) -> None:
    """Announce what becomes of `item`; free without observers. address, probe: see `EventRetried`."""
    if not context.announce.observers:
        return
    message, destination, took = item.message, item.destination, item.took or 0.0
    match outcome:
        case Delivered():
            announce_delivered(context, [item], address)
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
                    address=address,
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
                    address=address,
                )
            )
        case _:
            assert_never(outcome)
