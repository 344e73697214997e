"""The confirms of a published batch: recognised among the bytes of a connection, resolved to one result per message.

Pure: bytes and delivery tags in, results out. `ChannelRefused` is what the broker replies instead of confirms, and
`ConfirmWindow` limits the unconfirmed messages. The broker confirms single messages or several at once, in any order.
It returns an unroutable message *before* it acks it; a return carries no delivery tag, so it is matched by message id,
exchange and routing key.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from pillarbox.core.errors import (
    ConfigurationError,
    NackedError,
    PillarboxError,
    RejectedError,
    SendError,
    UnavailableError,
)
from pillarbox.core.transport import Outgoing, SendResult

Confirm = tuple[int, int, bool, bool]
"""A confirm of the broker: channel, delivery tag, whether it is multiple, whether it is an ack."""
ReturnIdentity = tuple[str | None, str | None, str | None]
"""Message id, exchange and routing key of a returned message."""

_confirm = struct.Struct(">BHIIQBB").unpack_from
"""Type of frame, channel, size; class and method, tag, bits; the byte that ends a frame."""
_CONFIRM_SIZE = 21
_CONFIRM_PAYLOAD = _CONFIRM_SIZE - 8
_METHOD, _END = 1, 0xCE
_ACK = 60 << 16 | 80
_NACK = 60 << 16 | 120

_OPEN, _ACKED, _NACKED = 0, 1, 2
_STATES = (b"\x00", b"\x01", b"\x02")
_NEVER = UnavailableError("the broker never confirmed the message; it is sent again")


def leading_confirms(data: bytes, channels: Container[int]) -> tuple[list[Confirm], int]:
    """The confirms of these channels at the beginning of the data, and the number of bytes they take.

    The search ends at any other frame, and at a confirm whose last bytes are not yet received.
    """
    confirms: list[Confirm] = []
    offset, last = 0, len(data) - _CONFIRM_SIZE
    while offset <= last:
        kind, channel, size, method, tag, bits, end = _confirm(data, offset)
        if kind != _METHOD or size != _CONFIRM_PAYLOAD or end != _END or channel not in channels:
            break
        if method != _ACK and method != _NACK:
            break
        confirms.append((channel, tag, bits & 1 == 1, method == _ACK))
        offset += _CONFIRM_SIZE
    return confirms, offset


class Publication(NamedTuple):
    """One message with its position in the batch and its resolved address."""

    position: int
    outgoing: Outgoing
    exchange: str
    routing_key: str

    @property
    def event_id(self) -> str:
        return self.outgoing.message.event_id

    @property
    def place(self) -> str:
        """Exchange and routing key, for errors."""
        return f"exchange {self.exchange!r}, routing key {self.routing_key!r}"


publication_of: Callable[[Iterable[Any]], Publication] = partial(cast(Any, tuple).__new__, Publication)
"""A publication of its fields, in a third of the time of `Publication(…)`."""


class BatchResults:
    """One result per message of a batch. The first result of a message stands."""

    __slots__ = ("_known", "_results", "_unknown")

    def __init__(self, size: int) -> None:
        # A message without a result must not count as accepted.
        self._results: list[SendResult] = [_NEVER] * size
        self._known = bytearray(size)
        self._unknown = size

    def set(self, position: int, result: SendResult) -> None:
        if not self._known[position]:
            self._results[position] = result
            self._known[position] = True
            self._unknown -= 1

    def accept(self, publications: Sequence[Publication]) -> None:
        """Accept those that have no result yet."""
        if len(publications) == self._unknown == len(self._results):
            self._results = [None] * self._unknown
            self._known = bytearray(b"\x01" * self._unknown)
            self._unknown = 0
            return
        for publication in publications:
            self.set(publication.position, None)

    def pending(self, publications: Iterable[Publication]) -> list[Publication]:
        """Those that have no result yet."""
        return [one for one in publications if not self._known[one.position]] if self._unknown else []

    def fail(self, publications: Iterable[Publication], error: SendError) -> None:
        """Set this error for those that have no result yet."""
        for publication in publications:
            self.set(publication.position, error)

    def as_list(self) -> list[SendResult]:
        return self._results


class Confirms:
    """Acks and nacks of messages that were published with consecutive delivery tags from `first`.

    A tag outside of that range belongs to another batch and changes nothing.
    """

    __slots__ = ("_first", "_low", "_states", "open")

    def __init__(self, first: int, size: int) -> None:
        self._first = first
        self._states = bytearray(size)
        self._low = 0
        """Every position below was confirmed by a multiple; later multiples start here."""
        self.open = size
        """The number of unconfirmed messages."""

    def resolve(self, tag: int, *, multiple: bool, accepted: bool) -> None:
        """Take one ack or nack; `multiple` confirms all unconfirmed messages up to the tag, tag 0 all of them."""
        states = self._states
        position = tag - self._first
        state = _ACKED if accepted else _NACKED
        if multiple:
            size = len(states)
            low, end = self._low, size if tag == 0 else min(position + 1, size)
            if low < end:
                self.open -= states.count(_OPEN, low, end)
                states[low:end] = states[low:end].replace(_STATES[_OPEN], _STATES[state])
                self._low = end
        elif 0 <= position < len(states) and states[position] == _OPEN:
            states[position] = state
            self.open -= 1

    @property
    def all_accepted(self) -> bool:
        """Whether the broker acked every message."""
        return self._states.count(_ACKED) == len(self._states)

    def accepted(self, position: int) -> bool | None:
        """Whether the broker acked the message at this position; None: unconfirmed."""
        state = self._states[position]
        return None if state == _OPEN else state == _ACKED


class PublishedBatch:
    """Messages that were published together and wait for their confirms, in the order of their delivery tags."""

    __slots__ = ("_positions", "_publications", "confirms", "returned")

    def __init__(self, publications: Sequence[Publication], first_tag: int) -> None:
        self._publications = publications
        self.confirms = Confirms(first_tag, len(publications))
        self.returned: dict[int, str] = {}
        self._positions: dict[ReturnIdentity, deque[int]] | None = None

    def note_return(self, identity: ReturnIdentity, reason: str) -> None:
        """Note a return for the first message of that identity that is neither confirmed nor returned."""
        if self._positions is None:
            self._positions = {}
            for position, publication in enumerate(self._publications):
                known_by = (publication.event_id, publication.exchange, publication.routing_key)
                self._positions.setdefault(known_by, deque()).append(position)
        positions = self._positions.get(identity, deque())
        while positions:
            position = positions.popleft()
            if self.confirms.accepted(position) is None:
                self.returned[position] = reason
                return

    @property
    def unroutable(self) -> list[Publication]:
        """The messages that the broker returned."""
        return [self._publications[position] for position in self.returned]

    def report(self, results: BatchResults) -> None:
        """Set the results of the confirmed messages; unconfirmed ones stay pending."""
        if not self.returned and self.confirms.all_accepted:
            results.accept(self._publications)
            return
        for position, publication in enumerate(self._publications):
            accepted = self.confirms.accepted(position)
            if accepted is None:
                continue
            result: SendResult = None
            if not accepted:
                result = NackedError(
                    f"the broker nacked event {publication.event_id} ({publication.place}), as a full queue does; "
                    "let consumers catch up or raise max_length"
                )
            elif position in self.returned:
                result = RejectedError(
                    f"no queue is bound for event {publication.event_id} ({publication.place}): "
                    f"{self.returned[position]}; bind one, or change the destination's routing key"
                )
            results.set(publication.position, result)


class ChannelRefused(Exception):
    """The broker closed a channel; it does not say over which message."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code

    @property
    def differs(self) -> bool:
        """Whether something exists with other arguments than those declared."""
        return self.code == 406 and "inequivalent arg" in str(self)

    @property
    def is_of_topic(self) -> bool:
        """Whether the broker refuses a routing key of an exchange, and not the exchange."""
        return self.code == 403 and "access to topic" in str(self)

    @property
    def can_be_used(self) -> bool:
        """Whether a queue exists that keeps its messages. The broker compares these two before all arguments."""
        return self.differs and not any(f"arg '{name}'" in str(self) for name in ("durable", "auto_delete"))

    def declaration_error(self, what: str) -> PillarboxError:
        """The error if this refuses the declaration of `what`."""
        match self.code:
            case 406:
                return ConfigurationError(
                    f"{what} is not what the configuration says: {self}; change the configuration, delete what exists "
                    "(its messages go with it), or set declare = false"
                )
            case 403:
                return UnavailableError(f"this user must not declare {what}: {self}; grant it, or set declare = false")
            case _:
                return UnavailableError(f"{what} could not be declared: {self}")


class ConfirmWindow:
    """The number of messages that may be unconfirmed at once, over all batches: first come, first served."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def acquire(self, count: int) -> None:
        """Wait until `count` messages fit, at most the size of the window; `release` them afterwards."""
        if not self._waiting and self._free >= count:
            self._free -= count
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self.release(0)
            else:
                self.release(count)
            raise

    def release(self, count: int) -> None:
        """Let others use these again."""
        self._free += count
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.cancelled():
                if wanted > self._free:
                    return
                self._free -= wanted
                turn.set_result(None)
            self._waiting.popleft()
