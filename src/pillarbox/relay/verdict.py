"""What an answer means for a message: a pure decision. Whether to try again is decided here and nowhere else; when is
the retry policy's arithmetic; only the store remembers it.

    accepted          Delivered
    PermanentError    Dead
    Rejected          Retry, charged; Dead once the policy gives up
    Nacked            Retry, never charged
    Unavailable       OUTAGE: the destination's matter; nobody is charged. Counted as a rejection where outages are to
                      count, and where the message alone failed while its neighbours passed
    no route          Retry, uncharged, for about an hour; then Dead
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal

from pillarbox.core.clock import Chance
from pillarbox.core.errors import Nacked, PermanentError, SendError, Unavailable, primary_text
from pillarbox.core.message import Message
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry, legible
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.transport import Result

OnExhausted = Literal["skip", "block"]
Outages = Literal["wait", "count"]


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
        case Nacked():
            return Retry(delay=_NACKED.delay(message.tries + 1, chance) or 0, error=error_text(result), charge=False)
        case Unavailable() if overtaken:
            return Retry(delay=_NACKED.delay(message.tries + 1, chance) or 0, error=error_text(result), charge=False)
        case Unavailable() if outages == "wait" and not alone:
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
