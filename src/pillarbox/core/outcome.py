"""What becomes of a message: closed types, matched exhaustively.

Delivered   the transport confirmed it: it moves to the history
Retry       it is sent again later; counted as an attempt, or as a deferral (an outage, a nack)
Dead        it moves to the dead letters, or blocks its key where `on_exhausted` says so
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
    charge: bool = True
    """False counts a deferral (`tries`) instead of an attempt: the message is not at fault."""
    noted: bool = False
    """The attempt was counted before the send: it is not counted again, or taken back if it is not to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """Dead-letter it. With `block` it stays first in its key, shown as FAILED, until an operator decides."""

    error: str
    block: bool = False
    charge: bool = True
    """False where it was never sent (no route, cannot be encoded)."""
    noted: bool = False
    """The attempt was counted before the send."""


Outcome = Delivered | Retry | Dead

DELIVERED = Delivered()


class Decision(NamedTuple):
    """A message, what became of it, the destination it was resolved to, and how long the send took."""

    message: Message
    outcome: Outcome
    destination: str
    seconds: float | None = None
    """By a monotonic clock, so never negative; None where nothing was sent."""


class Split(NamedTuple):
    """One message to become one per destination; the copies keep the event's id and its sequence."""

    message: Message
    destinations: tuple[str, ...]


class Resolved(NamedTuple):
    """A message that has to wait, with the destination it waits for."""

    message: Message
    destination: str


LONGEST_DELAY = 100 * 365.25 * 86_400
"""A hundred years in seconds: beyond it a database's clock may overflow, and a settlement must not fail for that."""

LONGEST_ERROR = 8000
_ILLEGIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def legible(error: str) -> str:
    """`error` as every database and log can keep it: a failure must not make its own recording fail."""
    return _ILLEGIBLE.sub(lambda found: f"\\x{ord(found[0]):02x}", error[:LONGEST_ERROR])


class CarriedOut(NamedTuple):
    """What became of requests of operators."""

    done: int
    """How many requests were closed."""
    deferred: list[tuple[int, str]]
    """Positions of messages in flight for which a request is open."""


class Writes(Protocol):
    """What became of it. Each verb locks its lanes, compares epochs and writes in one statement.

    A message whose new (event id, destination) already waits is a repeat: it is dropped if its bytes are the
    same, else it becomes a dead letter; it is never an error.
    """

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        """Write decisions. The first settlement after a takeover clears the lane's crashes.

        A decision concerns the row that was read: one with the same event id and destination in another place, such as
        a dead letter that was edited and sent again meanwhile, is left alone. So do all verbs here.

        What counts a try is written only if the message has failed as often as it says itself: a decision that
        is written again, because the answer to the first time was lost, is not charged twice. The same goes for `note`.
        """
        ...

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        """Put messages behind their key or aside for their destination, out of the reader's way."""
        ...

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        """Replace each message by one per destination, in its place."""
        ...

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, charge: bool = False, noted: bool = False
    ) -> Settled:
        """Note a try that failed, or that is about to begin, and leave the messages where they are.

        `noted`: it was charged before it began, and that is taken back now unless it is to be charged.
        They carry their resolved destination from then on: whoever keeps one in hand goes on with `message.to(…)`.
        """
        ...

    async def carry_out(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> CarriedOut:
        """Do what operators asked for pending messages of these lanes.

        A request for a message in flight (by its place) stays open until that message is decided: what is being sent
        cannot be discarded, and what is changed in the table would be sent as it was.
        """
        ...

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        """Ask the owners of their lanes to retry pending messages, each an event id and a destination."""
        ...
