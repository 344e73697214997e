"""What a transport is: three verbs. `send` takes a lot and gives one answer per message, in order.

Accepted means *durably accepted*. Everything else is an error that carries its verdict, so that nobody above ever looks
at a driver's exception:

    Unavailable      the destination cannot take anything now: connection, timeout, blocked, no such exchange, forbidden
      Nacked         … and it said so of this one message (a full queue)
    Rejected         this one message is at fault: no queue for it, its handler raised or took too long
      PermanentError … and trying again is pointless: too large, cannot be encoded, the handler said so
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pillarbox.core.errors import SendError
from pillarbox.core.message import Message

Result = SendError | None
"""None: durably accepted."""


class Outgoing(NamedTuple):
    """A message on its way out: what it is, where exactly it goes, and what is on the wire."""

    message: Message
    address: Address
    body: bytes
    content_type: str
    headers: Mapping[str, str]
    """The producer's headers and what the relay adds to them."""
    attempt: int = 1
    """Which send of the message this is, from 1; those that an outage ended count."""
    epoch: int = 0
    """The fencing token of the message's lane: for handlers that guard something of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A place as its transport understands it. Each transport has an address type of its own."""

    transport: str = ""
    """Which of several transports of one kind; '' where there is only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a transport likes its work."""

    lot: int = 500
    """The most messages in one `send`."""
    lots: int = 4
    """The most `send`s at once."""
    bounded: bool = False
    """It bounds its sends itself and takes its time by nature, as handlers do: nobody else is to set a timeout."""


class Transport(Protocol):
    """A way out. All verbs may be called from one event loop only; `send` may be called several times at once."""

    @property
    def pace(self) -> Pace: ...
    @property
    def address_type(self) -> type[Address]: ...

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Where events of a type go when nobody configured any route: destination name → address; empty = nowhere."""
        ...

    async def send(self, lot: Sequence[Outgoing]) -> list[Result]:
        """Send, and wait for the answers; one per message, in order. Raises nothing but cancellation and, once closed,
        Unavailable."""
        ...

    async def ping(self) -> None:
        """Raise Unavailable unless something could be sent now."""
        ...

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine. What is being sent is answered with Unavailable."""
        ...
