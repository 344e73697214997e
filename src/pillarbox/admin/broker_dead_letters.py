"""Dead letters on a broker: messages in dead-letter queues, put there by a consumer or by the broker.

Invariants: received dead letters return to their queue in order when receiving ends, however it ends. A dead letter
leaves its queue only by `move`, which acknowledges it after the other queue has confirmed it. A crash in between leaves
it in both queues, never in neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pillarbox.core.outcome import sanitize_error


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDeadLetter:
    """A message of a dead-letter queue. A fact that its headers do not tell is None."""

    queue: str
    """The dead-letter queue that has it."""
    event_id: str | None
    event_type: str | None
    reason: str | None
    attempts: int
    """How often it failed, as far as its headers tell."""
    dead_lettered_at: datetime | None
    original_queue: str | None
    """The queue in which it was dead-lettered."""
    delivery_count: int
    """How often it was delivered from the dead-letter queue and returned, as far as the broker counts."""
    content_type: str | None
    size: int
    """Bytes of its body."""
    body: bytes = field(repr=False)


def dead_letter_queue(work: str) -> str:
    """Return the default name of the dead-letter queue of a work queue."""
    return f"{work}.dlq"


def legible(text: str | None) -> str | None:
    """Escape what is not UTF-8 or cannot be printed in a text that a producer wrote; None stays None."""
    return None if text is None else sanitize_error(text)


class ReceivedDeadLetter(Protocol):
    """A dead letter that was received and not yet returned."""

    @property
    def dead_letter(self) -> BrokerDeadLetter: ...

    async def move(self, queue: str) -> None:
        """Publish it to another queue of the same broker; acknowledge it once that queue has confirmed it.

        Raises RejectedError if there is no such queue, NackedError if that queue is full, UnavailableError if the
        broker is unavailable: then the dead letter stays.
        """
        ...


class BrokerDeadLetters(Protocol):
    """The dead-letter queues of one broker."""

    async def depth(self, queue: str) -> int | None:
        """Return how many dead letters of a queue are ready; None if there is no such queue.

        Raises RejectedError if the broker denies access to the queue, UnavailableError if the broker is unavailable.
        """
        ...

    def receive(
        self, queue: str, *, limit: int, prefetch: int
    ) -> AbstractAsyncContextManager[AsyncIterator[ReceivedDeadLetter]]:
        """Receive the first dead letters of a queue, up to `limit`; no other consumer receives them meanwhile.

        At most `prefetch` are unacknowledged at once: the iterator ends early when this many were not moved. Raises
        RejectedError if the broker denies access to the queue, UnavailableError if the broker is unavailable.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        ...
