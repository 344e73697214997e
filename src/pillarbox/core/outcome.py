"""The outcomes of a message: closed types, matched exhaustively.

Delivered   the transport confirmed it: it moves to the history
Retry       the relay sends it again later; counts as an attempt, or as a deferral (an outage, a nack)
Dead        it moves to the dead letters, or blocks its key (`on_exhausted = "block"`)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pillarbox.core.clock import LONGEST
from pillarbox.core.errors import primary_text
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message


@dataclass(frozen=True, slots=True)
class Delivered:
    """The transport confirmed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Send it again after `delay` seconds of the database's clock."""

    delay: float
    error: str
    counted: bool = True
    """False counts a deferral (`deferrals`) instead of an attempt: the message is not at fault."""
    counted_before_send: bool = False
    """The attempt was already counted, before the send; undone if `counted` is False."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """Dead-letter it. With `block` it stays pending, shown as FAILED, and blocks its key until an operator decides."""

    error: str
    block: bool = False
    counted: bool = True
    """False if it was never sent (no route, cannot be encoded)."""
    counted_before_send: bool = False
    """The attempt was counted before the send."""


Outcome = Delivered | Retry | Dead
"""What becomes of a message after an attempt to send it."""

DELIVERED = Delivered()


class Decision(NamedTuple):
    """A message, its outcome, its resolved destination, and the duration of the send."""

    message: Message
    outcome: Outcome
    destination: str
    seconds: float | None = None
    """By a monotonic clock, so never negative; None if nothing was sent."""


class Split(NamedTuple):
    """A message to replace by one per destination; the copies keep the event id and the sequence."""

    message: Message
    destinations: tuple[str, ...]


class Resolved(NamedTuple):
    """A message and the destination that it was resolved to."""

    message: Message
    destination: str


MAX_DELAY = LONGEST
"""A hundred years in seconds: a longer delay could overflow the database's clock and make a settlement fail."""

MAX_ERROR_LENGTH = 8000
_UNSTORABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def sanitize_error(error: str) -> str:
    """`error` shortened, with control characters escaped, so that every database and log can store it."""
    return _UNSTORABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", error[:MAX_ERROR_LENGTH])


def error_text(error: BaseException) -> str:
    """`error` for operators: its type and text, shortened and without control characters. Never raises."""
    name = type(error).__name__
    try:
        said = primary_text(error)
    except Exception as failure:
        said = f"(no error text: {type(failure).__name__})"
    return sanitize_error(f"{name}: {said}" if said else name)


class RequestResults(NamedTuple):
    """The result of executing operator requests."""

    done: int
    """How many requests were closed."""
    deferred: list[tuple[int, str]]
    """Positions of messages in flight with an open request."""


class Writes(Protocol):
    """Writes the outcomes of messages. Each method locks the lanes, compares the epochs and
    writes in one transaction.

    A message whose new (event id, destination) is already pending is a duplicate: it is dropped if its content is the
    same, else dead-lettered. Duplicates raise no error.
    """

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        """Write decisions. The first settlement after a takeover clears the crashes of the lane.

        A decision applies only to the row that was read, not to one with the same event id and destination at another
        position, such as a dead letter that an operator edited and retried meanwhile. This holds for all methods.

        A failed send is counted only if the counts of the row equal those of the message: a decision that is written
        twice, because the first response was lost, counts once. This holds for `count_attempt`, too.
        """
        ...

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        """Mark messages as waiting for their key or parked for their destination; `Ready` skips them."""
        ...

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        """Replace each message by one per destination, at the same position."""
        ...

    async def count_attempt(
        self,
        epochs: Epochs,
        messages: Sequence[Resolved],
        *,
        error: str,
        counted: bool = False,
        counted_before_send: bool = False,
    ) -> Settled:
        """Count a send that failed or is about to begin; the messages stay where they are.

        `counted_before_send`: an attempt was counted before the send; it is taken back now unless `counted` is set.
        The rows contain the resolved destination from now on: the caller continues with `message.to(…)`.
        """
        ...

    async def execute_requests(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> RequestResults:
        """Execute operator requests for pending messages of these lanes.

        A request for a message in flight stays open until that message is settled, because a message that is being
        sent can be neither discarded nor changed.
        """
        ...

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        """Request a retry of pending messages, each an event id and a destination, from the owners of their lanes."""
        ...
