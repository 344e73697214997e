"""Dead letters that lie on a broker, in queues of their own: put there by a consumer that gave up, or by the broker.

What must stay true: a look takes letters in hand and gives them back in their order when it ends, however it ends; a
letter leaves only when it is moved, and then it is safe where it goes before it is forgotten here. Whoever dies in
between leaves it in both queues, never in neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLetter:
    """A dead letter as it lies there. What nobody wrote on it is None."""

    queue: str
    """The dead-letter queue it lies in."""
    event_id: str | None
    event_type: str | None
    reason: str | None
    attempts: int
    """How often it failed, as far as anybody counted."""
    died_at: datetime | None
    came_from: str | None
    """The queue in which it was given up."""
    given_out: int
    """How often somebody had it in hand before and gave it back, as far as the broker counts."""
    content_type: str | None
    size: int
    """Bytes of its body."""
    body: bytes = field(repr=False)


def dead_letter_queue(work: str) -> str:
    """Where a consumer puts what it gives up, unless its work queue says otherwise."""
    return f"{work}.dlq"


class LetterInHand(Protocol):
    """One letter of a look that has not ended."""

    @property
    def letter(self) -> BrokerLetter: ...

    async def move(self, queue: str) -> None:
        """Put it into another queue of the same broker, and forget it here once it is safe there.

        Raises RejectedError if there is no such queue, NackedError if that is full, UnavailableError if the broker
        cannot be reached: then it stays.
        """
        ...


class BrokerLetters(Protocol):
    """The dead-letter queues of one broker."""

    async def depth(self, queue: str) -> int | None:
        """How many letters lie there that nobody has in hand; None if there is no such queue.

        Raises RejectedError if the broker does not tell of this queue, UnavailableError if it cannot be reached.
        """
        ...

    def look(self, queue: str, *, most: int, window: int) -> AbstractAsyncContextManager[AsyncIterator[LetterInHand]]:
        """The first letters that lie there, up to `most`; nobody else sees those that are in hand.

        No more than `window` are in hand at once: it ends early when there are so many that were not moved. Raises
        RejectedError if the broker does not give out letters of this queue, UnavailableError if it cannot be reached.
        """
        ...

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine."""
        ...
