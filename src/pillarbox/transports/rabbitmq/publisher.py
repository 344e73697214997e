"""Publishes batches over a channel in confirm mode: writes all messages at once, then waits for the confirms.

Every message is persistent and mandatory. `PublishEncoder` writes the frames of a message directly, which takes a
fraction of pika's time. What it does not encode (too long, too large, of another type) it leaves to pika, in the order
of the batch; pika encodes it or says why it cannot. pika publishes everything if its internals are not those that
`driver` knows.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from pillarbox import failpoints
from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.transports.rabbitmq.confirms import BatchResults, Publication, PublishedBatch
from pillarbox.transports.rabbitmq.driver import (
    AMQPError,
    Basic,
    BasicProperties,
    Channel,
    ChannelWrongStateError,
    ConnectionWrongStateError,
    Method,
    RawChannel,
    Wire,
)

K = TypeVar("K", bound=Hashable)

_METHOD, _HEADER, _BODY, _END = 1, 2, 3, 0xCE
_END_BYTE = b"\xce"
_OVERHEAD = 8
"""Bytes of a frame besides its payload."""
_CLASS_BASIC = 60
_PUBLISH = struct.pack(">HHH", _CLASS_BASIC, 40, 0)
_MANDATORY = b"\x01"
_FLAGS = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 7 | 1 << 6 | 1 << 5
"""Content type, headers, delivery mode, message id, timestamp, type: the properties that every message has."""
_CORRELATION_ID = 1 << 10
_HEADER_SIZE = 18
"""Bytes of a header frame's payload besides the properties: class, weight, body size, flags, length of the table."""
_RESERVE = 8192
"""Bytes of a header frame reserved for everything but the headers: half a dozen texts of at most 255 bytes fit."""
_REPEATED, _ELSEWHERE = 1, 2
_KINDS = {"eventType": _REPEATED, "aggregateType": _REPEATED, "correlationId": _ELSEWHERE, "schemaVersion": _ELSEWHERE}
"""Headers whose values repeat, and headers that are sent as something else: a property, a number."""
_CACHE_SIZE = 1024
_MAX_CACHED = 255
"""Characters of a cached value: bounds the memory of the cache."""

_frame_start = struct.Struct(">BHI").pack
_header_start = struct.Struct(">BHIHHQH").pack
_between = struct.Struct(">BBHI").pack
_uint32 = struct.Struct(">I").pack
_uint64 = struct.Struct(">Q").pack


class Publisher(Channel):
    """A channel in confirm mode that publishes one batch at a time; `idle` says whether it may take the next."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._encoder: PublishEncoder | None = None
        self._batch: PublishedBatch | None = None
        self._next_tag = 1

    async def open(self) -> None:
        await super().open()
        wire, raw = self.wire, self.raw
        raw.add_on_return_callback(self._returned)
        await self.call(raw.confirm_delivery, ack_nack_callback=self._confirmed_by_pika)
        if wire.direct:
            self._encoder = PublishEncoder(raw.channel_number, wire.params.frame_max)
            wire.take_confirms(raw, self._confirmed)

    @property
    def idle(self) -> bool:
        return self.failure is None and self._batch is None

    async def publish(self, publications: Sequence[Publication], results: BatchResults) -> list[Publication]:
        """Publish and wait for every confirm; returns the messages that came back as unroutable.

        However it ends, confirmed messages have their results. Raises ChannelRefused, UnavailableError. Then, and if it
        is cancelled, the channel cannot be used again, so that no later batch receives a late confirm.
        """
        wire, raw = self.wire, self.raw
        if not raw.is_open:
            raise UnavailableError("the channel was closed")
        batch = PublishedBatch(self._write(wire, raw, publications, results), self._next_tag)
        end = wire.written
        self._next_tag += batch.confirms.open
        self._batch = batch
        try:
            if batch.confirms.open:
                if failpoints.armed:
                    failpoints.hit("after-send")
                await self.reply()
                wire.received = max(wire.received, end)
            self._batch = None
        finally:
            batch.report(results)
        return batch.unroutable

    def _write(
        self, wire: Wire, raw: RawChannel, publications: Sequence[Publication], results: BatchResults
    ) -> Sequence[Publication]:
        """Write the messages in their order; returns those that could be encoded. Raises UnavailableError."""
        encoder, now = self._encoder, int(time.time())
        if encoder is not None and (pieces := encoder.encode(publications, now)) is not None:
            wire.write(pieces)
            return publications
        published: list[Publication] = []
        with wire.joined():
            for publication in publications:
                if encoder is not None and (pieces := encoder.encode([publication], now)) is not None:
                    wire.write(pieces)
                elif (refusal := _publish_by_pika(raw, publication, now, wire.params.frame_max)) is not None:
                    results.set(publication.position, refusal)
                    continue
                published.append(publication)
        return published

    def _confirmed_by_pika(self, frame: Method[Basic.Ack] | Method[Basic.Nack]) -> None:
        method = frame.method
        self._confirmed(method.delivery_tag, method.multiple, isinstance(method, Basic.Ack))

    def _confirmed(self, tag: int, multiple: bool, accepted: bool) -> None:
        if self._batch is not None:
            if failpoints.armed:
                failpoints.hit("before-confirm")
            self.wire.confirmed += 1
            confirms = self._batch.confirms
            confirms.resolve(tag, multiple=multiple, accepted=accepted)
            if not confirms.open:
                self.replied()

    def _returned(self, _: RawChannel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        if self._batch is not None:
            identity = (properties.message_id, method.exchange, method.routing_key)
            self._batch.note_return(identity, f"{method.reply_text} ({method.reply_code})")


def _publish_by_pika(
    raw: RawChannel, publication: Publication, timestamp: int, frame_max: int
) -> PermanentError | None:
    """Publish one message; returns the error if pika cannot encode it, and then writes nothing of it. Raises
    UnavailableError."""
    outgoing = publication.outgoing
    try:
        properties = properties_of(outgoing, timestamp, frame_max)
        raw.basic_publish(publication.exchange, publication.routing_key, outgoing.body, properties, mandatory=True)
    except PermanentError as error:
        return error
    except (ChannelWrongStateError, ConnectionWrongStateError) as error:
        raise UnavailableError(f"the channel was closed: {error}") from error
    except (AMQPError, ValueError, TypeError, struct.error) as error:
        return PermanentError(
            f"event {publication.event_id} cannot be encoded for AMQP ({type(error).__name__}: {str(error)[:200]}); "
            "names and property texts have at most 255 bytes of UTF-8"
        )
    return None


def properties_of(outgoing: Outgoing, timestamp: int, frame_max: int) -> BasicProperties:
    """The properties of a message that pika encodes, as in docs/reference/message-properties.md.

    Raises PermanentError if the headers do not fit into one frame: the broker would close the connection over it, and
    every other message in flight would fail.
    """
    message = outgoing.message
    characters = sum(len(name) + len(value) for name, value in outgoing.headers.items())
    if 4 * characters + _RESERVE >= frame_max:  # else they fit, however many bytes each character has
        size = sum(len(name.encode()) + len(value.encode()) + 6 for name, value in outgoing.headers.items())
        if size + _RESERVE > frame_max:
            raise PermanentError(
                f"the headers of event {message.event_id} have {size} bytes, and the broker takes about "
                f"{frame_max - _RESERVE} (its frame_max); put them in the payload"
            )
    headers: dict[str, Any] = {**outgoing.headers, "schemaVersion": message.schema_version}
    headers.pop("correlationId", None)  # a property of its own
    return BasicProperties(
        message_id=message.event_id,
        content_type=outgoing.content_type,
        type=message.event_type,
        timestamp=timestamp,
        correlation_id=message.correlation_id,
        delivery_mode=2,
        headers=headers,
    )


class _Cache(dict[K, bytes]):
    """Encodes each value once. Starts afresh when it is full, so that endless routing keys take no endless memory."""

    def __init__(self, encode: Callable[[K], bytes]) -> None:
        self._encode = encode

    def __missing__(self, value: K) -> bytes:
        encoded = self._encode(value)
        if len(self) >= _CACHE_SIZE:
            self.clear()
        self[value] = encoded
        return encoded


class PublishEncoder:
    """Encodes the messages of one channel: persistent and mandatory, as `properties_of` and pika would."""

    def __init__(self, channel: int, frame_max: int) -> None:
        self._channel = channel
        self._max_body = frame_max - _OVERHEAD
        self._max_table = frame_max - _RESERVE
        self._methods: _Cache[tuple[str, str]] = _Cache(self._method)
        self._texts: _Cache[str] = _Cache(_short_string)
        self._names: _Cache[str] = _Cache(_header_name)
        self._repeated: _Cache[tuple[str, str]] = _Cache(_header)
        self._versions: _Cache[int] = _Cache(_schema_version)

    def encode(self, publications: Sequence[Publication], timestamp: int) -> list[bytes] | None:
        """The frames of these messages, in pieces to be joined. None: pika has to encode one of them, or refuse it."""
        pieces: list[bytes] = []
        stamp = _uint64(timestamp)
        try:
            for publication in publications:
                pieces += self._encode(publication, stamp)
        except (AttributeError, OverflowError, TypeError, ValueError, struct.error):
            return None
        return pieces

    def _encode(self, publication: Publication, stamp: bytes) -> tuple[bytes, ...]:
        # This runs for every message. So it names every field once and calls nothing that it can write out.
        _, outgoing, exchange, routing_key = publication
        message, _, body, content_type, headers, _, _ = outgoing
        version = message.schema_version
        if type(body) is not bytes or type(version) is not int:
            raise TypeError(type(body), type(version))
        names, texts, kinds = self._names, self._texts, _KINDS
        fields = [self._versions[version]]
        left_out = 0
        for header in headers.items():
            name, value = header
            kind = kinds.get(name)
            if kind == _REPEATED and len(value) <= _MAX_CACHED:
                fields.append(self._repeated[header])
            elif kind == _ELSEWHERE:
                left_out += len(name) + len(value.encode())
            else:
                raw = value.encode()
                fields += (names[name], _uint32(len(raw)), raw)
        table = b"".join(fields)
        size, length = len(body), len(table)
        # `properties_of` counts those that are left out, too, and refuses what is too large.
        if length + left_out > self._max_table:
            raise ValueError(length)
        event_id = message.event_id.encode()
        flags, correlation_id = _FLAGS, b""
        if message.correlation_id is not None:
            flags, correlation_id = _FLAGS | _CORRELATION_ID, _short_string(message.correlation_id)
        # Delivery mode 2 is persistent. A message id of more than 255 bytes overflows %c.
        rest = b"\x02%b%c%b%b%b" % (correlation_id, len(event_id), event_id, stamp, texts[message.event_type])
        content = texts[content_type]
        payload = _HEADER_SIZE + len(content) + length + len(rest)
        start = _header_start(_HEADER, self._channel, payload, _CLASS_BASIC, 0, size, flags)
        method = self._methods[exchange, routing_key]
        if 0 < size <= self._max_body:
            between = _between(_END, _BODY, self._channel, size)
            return method, start, content, _uint32(length), table, rest, between, body, _END_BYTE
        return (method, start, content, _uint32(length), table, rest, _END_BYTE, *self._body_frames(body))

    def _body_frames(self, body: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        for start in range(0, len(body), self._max_body):
            piece = body[start : start + self._max_body]
            pieces += (_frame_start(_BODY, self._channel, len(piece)), piece, _END_BYTE)
        return pieces

    def _method(self, address: tuple[str, str]) -> bytes:
        exchange, routing_key = address
        payload = _PUBLISH + _short_string(exchange) + _short_string(routing_key) + _MANDATORY
        return _frame_start(_METHOD, self._channel, len(payload)) + payload + _END_BYTE


def _short_string(text: str) -> bytes:
    """Raises ValueError for more than 255 bytes, which no single byte counts, and for what is not UTF-8."""
    raw = text.encode()
    return bytes((len(raw),)) + raw


def _header_name(name: str) -> bytes:
    """With the type of its value, a long string."""
    return _short_string(name) + b"S"


def _header(header: tuple[str, str]) -> bytes:
    name, value = header
    raw = value.encode()
    return _header_name(name) + _uint32(len(raw)) + raw


def _schema_version(version: int) -> bytes:
    """Raises struct.error for what 64 bits cannot hold."""
    name = _short_string("schemaVersion")
    if -(2**31) <= version < 2**31:
        return name + struct.pack(">ci", b"I", version)
    return name + struct.pack(">cq", b"l", version)
