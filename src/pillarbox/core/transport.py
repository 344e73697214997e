"""The protocol of a transport: `send` takes a batch and returns one result per message, in order.

None means *durably accepted*. Every other result is an error that says whether the message or the destination is at
fault, so that the relay does not need to know the exceptions of drivers:

    UnavailableError   the destination accepts nothing now: no connection, timeout, blocked, no such exchange, forbidden
      NackedError      … and it refused this one message for now (a full queue)
      GoneError        … and it said that it is gone: an operator must resume it
    RejectedError      this one message is at fault: no queue for it, its handler raised or took too long
      PermanentError   … and a retry is pointless: too large, cannot be encoded, the handler said so
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, cast, runtime_checkable

from pillarbox.core.errors import SendError
from pillarbox.core.message import Message

SendResult = SendError | None
"""None: durably accepted."""


class Outgoing(NamedTuple):
    """A message to send: its address, encoded body and headers."""

    message: Message
    address: Address
    body: bytes
    content_type: str
    headers: Mapping[str, str]
    """The headers of the producer and those that the relay adds."""
    attempt: int = 1
    """The number of this send, from 1; attempts and deferrals count."""
    epoch: int = 0
    """The fencing token of the message's lane, for handlers that fence their own writes."""


outgoing_of: Callable[[tuple[Message, Address, bytes, str, Mapping[str, str], int, int]], Outgoing] = partial(
    cast(Any, tuple).__new__, Outgoing
)
"""Creates an `Outgoing` from its fields, in half the time of `Outgoing(…)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a transport sends a message. Each transport has its own address type."""

    cloudevents_prefix: ClassVar[str] = "ce-"
    """Prefix of CloudEvents headers in binary mode."""
    messaging_system: ClassVar[str] = ""
    """`messaging.system` of the spans of OpenTelemetry; '': see `messaging_system`."""
    transport: str = ""
    """The name of one of several transports of the same kind; '': the only one."""

    def destination_name(self, message: Message) -> str:
        """`messaging.destination.name` of the spans of OpenTelemetry: the topic, subject, stream or queue that receives
        the message; '': the name of the destination. May raise PermanentError."""
        return ""


_SYSTEMS = {"webhook": "http", "handler": "pillarbox"}


def messaging_system(adapter: type) -> str:
    """`messaging.system` of a type of address or source: what its attribute `messaging_system` says, else its name
    without `Address` or `Source`, in lower case: `kafka` for `KafkaAddress` and `KafkaSource`."""
    stated: str = getattr(adapter, "messaging_system", "")
    name = adapter.__name__.removesuffix("Address").removesuffix("Source").lower()
    return stated or _SYSTEMS.get(name, name)


Capacity = Callable[[Address, Mapping[Address, int]], int]
"""How many more messages an address accepts, given how many are in flight to each address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the relay should call `send`: sizes, concurrency and timeouts."""

    batch_size: int = 500
    """The most messages in one `send`."""
    concurrency: int = 4
    """The most `send`s at once."""
    in_order: bool = False
    """The accepted messages of one `send` to one queue arrive in order; if the connection is lost, a message arrives
    only if all before it arrived. Destinations with pipelined ordering need this."""
    bytes: int | None = None
    """About how many bytes of payload and headers one `send` takes; None: no limit."""
    progress: Callable[[], object] | None = None
    """Returns another value whenever a send makes progress, such as bytes written or a message confirmed: a send does
    not time out as long as the value changes. None: progress is unknown."""
    has_own_timeout: bool = False
    """The transport has its own timeout, as handlers do: the relay sets none."""
    independent_results: bool = False
    """Each message is sent by its own `send`, so that a slow one does not delay the results of others; at most
    `batch_size` × `concurrency` at once. A `StreamingTransport` receives them in one call all the same. Like
    `capacity`, it must not change after the relay has started."""
    capacity: Capacity | None = None
    """A share per address; None: no limit. It is also called for each configured address before the first send, so that
    the transport knows whose shares to keep."""
    overdue: float | None = None
    """Seconds after which a send with its own timeout counts as hanging: its destination is unavailable until a message
    is accepted. None: never."""


class Transport(Protocol):
    """Sends messages. Use it from one event loop; `send` may be called concurrently."""

    @property
    def pace(self) -> Pace: ...
    @property
    def address_type(self) -> type[Address]: ...

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """The default route of an event type: destination name → address; empty: none."""
        ...

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        """Send and wait for the results; one per message, in order. Raises nothing but a cancellation and, once closed,
        UnavailableError."""
        ...

    async def ping(self) -> None:
        """Raise UnavailableError if nothing can be sent now."""
        ...

    async def aclose(self) -> None:
        """Close all connections; closing twice is fine. The result of messages in flight is UnavailableError."""
        ...


@runtime_checkable
class StreamingTransport(Protocol):
    """A transport with `Pace.independent_results` and `Pace.has_own_timeout` that takes all messages in one call and
    yields results as they come."""

    def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
        """Send as `send` does; yields results as soon as they arrive, each with the index of its message."""
        ...
