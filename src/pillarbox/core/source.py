"""What a source is: where a consumer's messages come from, and the three answers each of them is given.

    ack      its effect is committed: the message is forgotten
    retry    it comes again after a while; how often it failed is kept with it, whatever is restarted meanwhile
    reject   it goes to the dead letters, with the reason

Until it is answered, a delivery belongs to whoever received it; if he dies or loses his connection, it comes again.
At every step a message may come twice, and at none may it be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message as it came. A source judges nothing: what the message lacks is None."""

    event_id: str | None
    event_type: str | None
    body: bytes = field(repr=False)
    content_type: str | None = None
    correlation_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS, repr=False)
    attempts: int = 0
    """Failures charged to it so far."""
    tries: int = 0
    """Failures that were not its fault."""


class Delivery(Protocol):
    """One message in hand, to be answered once. Every answer raises UnavailableError if it can no longer be given: then
    the message comes again."""

    @property
    def incoming(self) -> Incoming: ...

    @property
    def alone(self) -> bool:
        """Whoever had it died, or lost his connection, again and again: nothing else is to be at work beside it."""
        ...

    @property
    def deaths(self) -> int:
        """How often it was taken in hand alone and never answered."""
        ...

    async def ack(self) -> None:
        """Forget it."""
        ...

    async def retry(self, *, after: float, reason: str, charge: bool = True) -> None:
        """Have it come again after so many seconds, or somewhat more; without `charge` its attempts stay as they are.

        Returns when the message is as safe where it waits as it was before.
        """
        ...

    async def reject(self, reason: str) -> None:
        """Put it with the dead letters. Returns when it is safe there."""
        ...


class Source(Protocol):
    """Where messages come from. Both verbs may be called from one event loop only, `receive` once at a time."""

    async def receive(self) -> Delivery:
        """The next message, as soon as there is one. It gives out no more than its prefetch before one is answered.

        Raises UnavailableError while there is no way to the broker, and then tries again when called again; raises
        ConfigurationError if what exists there is not what was configured. May be cancelled: nothing is lost.
        """
        ...

    async def connect(self) -> None:
        """Connect and declare now, without waiting for a message. Raises what `receive` raises."""
        ...

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine. What is not answered comes again, here or to another."""
        ...
