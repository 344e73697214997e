"""What a transport is: three methods. `send` takes a batch and returns one result per message, in order.

Accepted means *durably accepted*. Every other result is an error that says who is at fault, so that the relay never
looks at a driver's exception:

    UnavailableError   the destination accepts nothing now: no connection, timeout, blocked, no such exchange, forbidden
      NackedError      … and it refused this one message for now (a full queue)
    RejectedError      this one message is at fault: no queue for it, its handler raised or took too long
      PermanentError   … and a retry is pointless: too large, cannot be encoded, the handler said so
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

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


outgoing_of: Callable[[tuple[Message, Address, bytes, str, Mapping[str, str], int, int]], Outgoing] = partial(
    tuple.__new__,  # pyright: ignore[reportUnknownMemberType]
    Outgoing,
)
"""Of its fields, in half the time of `Outgoing(…)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A place as its transport understands it. Each transport has an address type of its own."""

    transport: str = ""
    """Which of several transports of one kind; '' where there is only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a transport likes its work."""

    batch_size: int = 500
    """The most messages in one `send`."""
    concurrency: int = 4
    """The most `send`s at once."""
    in_order: bool = False
    """The messages of one `send` to one queue arrive in their order, those that are refused excepted; and if its
    connection is lost, none arrives unless all before it did. Destinations with pipelined ordering need this."""
    bytes: int | None = None
    """About how many bytes of payload and headers go in one `send`; None: any number."""
    progress: Callable[[], object] | None = None
    """Answers something else whenever a send got anywhere, such as bytes that left or a message that was confirmed: a
    send that takes long is waited for as long as it does. None: it cannot tell."""
    bounded: bool = False
    """It bounds its sends itself and takes its time by nature, as handlers do: nobody else is to set a timeout."""
    apart: bool = False
    """Every message is a `send` of its own, so that a slow one delays no other's answer; `batch_size` times
    `concurrency` at once. A transport that has `answers`, see `AnswersApart`, is given them together all the same."""
    room: Callable[[Address, Mapping[Address, int]], int] | None = None
    """How many more messages an address takes, given how many are being sent to each: a share per address. None: any
    number."""
    overdue: float | None = None
    """Seconds after which a bounded send counts as hanging: its destination takes no more until something is accepted.
    None: never."""


class Transport(Protocol):
    """A way out. All verbs may be called from one event loop only; `send` may be called several times at once."""

    @property
    def pace(self) -> Pace: ...
    @property
    def address_type(self) -> type[Address]: ...

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """Where events of a type go when nobody configured any route: destination name → address; empty = nowhere."""
        ...

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        """Send, and wait for the answers; one per message, in order. Raises nothing but cancellation and, once closed,
        UnavailableError."""
        ...

    async def ping(self) -> None:
        """Raise UnavailableError unless something could be sent now."""
        ...

    async def aclose(self) -> None:
        """Close what is open; closing twice is fine. What is being sent is answered with UnavailableError."""
        ...


@runtime_checkable
class AnswersApart(Protocol):
    """What a transport whose messages go apart may add, to spare the relay a `send` for each of them."""

    def answers(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, Result]], None]:
        """Send as `send` does, and give each answer as soon as it is there, with the position of its message; together
        those that came together."""
        ...
