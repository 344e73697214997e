"""What becomes of a message: closed types, matched exhaustively.

Delivered   the transport confirmed it: it moves to the history
Retry       it is sent again later; counted as an attempt, or as a deferral (an outage, a nack)
Dead        it moves to the dead letters, or blocks its key where `on_exhausted` says so
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from pillarbox.core.message import Message


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
