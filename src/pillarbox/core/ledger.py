"""What is known of an event before it is sent, and from where.

False             nobody asks: a repeat of an event that was delivered is sent again
"history"         the history answers, for as long as it is kept; asked at the first send of an event only
True              a ledger of its own (`outbox_ledger`) is written before every send and at every settlement
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from pillarbox.core.message import Message

LedgerKind = bool | Literal["history"]


class Before(Enum):
    """What became of an event earlier, as far as is known."""

    NOT_SENT = "not sent"
    SENT = "sent"
    UNKNOWN = "unknown"
    """This very send was begun and never settled: a relay died or lost its lane in between."""


def begun(message: Message) -> int:
    """Which send of the message this is: another one after every answer that was settled."""
    return (message.attempts << 32) + message.tries


def is_first(message: Message) -> bool:
    """Whether it was never sent, and no operator wants it sent again."""
    return message.attempts == message.tries == 0
