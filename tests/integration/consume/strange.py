"""Unusual messages that a broker delivers: properties encoded byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pika
from hypothesis import strategies as st
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.rabbitmq.consumer import publish_confirmed

SHORT, TABLE, OCTET, LONG = "short", "table", "octet", "long"
KINDS = {
    "content_type": SHORT,
    "content_encoding": SHORT,
    "headers": TABLE,
    "delivery_mode": OCTET,
    "priority": OCTET,
    "correlation_id": SHORT,
    "reply_to": SHORT,
    "expiration": SHORT,
    "message_id": SHORT,
    "timestamp": LONG,
    "type": SHORT,
    "user_id": SHORT,
    "app_id": SHORT,
    "cluster_id": SHORT,
}


@dataclass(frozen=True)
class Strange:
    """A message: properties as bytes or numbers, headers as pairs of a name and a value with its type."""

    properties: dict[str, Any] = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] | None = None
    body: bytes = b"{}"

    INDEX: ClassVar = 60
    """The class of AMQP's basic properties."""

    def __repr__(self) -> str:
        return f"Strange({_short(self.properties)}, {_short(self.headers)}, {_short(self.body)})"

    def encode(self) -> list[bytes]:
        """The interface that pika expects."""
        given = dict(self.properties)
        if self.headers is not None:
            given["headers"] = None
        flags = sum(0x8000 >> place for place, name in enumerate(KINDS) if name in given)
        return [struct.pack(">H", flags), *(self._encoded(name, given[name]) for name in KINDS if name in given)]

    def _encoded(self, name: str, value: Any) -> bytes:
        match KINDS[name]:
            case "short":
                return bytes([len(value)]) + cast(bytes, value)
            case "octet":
                return struct.pack(">B", value)
            case "long":
                return struct.pack(">Q", value)
            case _:
                return sized(b"".join(entry(*header) for header in self.headers or ()))


def _short(value: object) -> str:
    return found if len(found := repr(value)) < 500 else f"{found[:500]}…"


def sized(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def entry(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + value


def text(value: bytes) -> bytes:
    return b"S" + sized(value)


def number(kind: bytes, form: str, value: float) -> bytes:
    return kind + struct.pack(form, value)


def table(*entries: tuple[bytes, bytes]) -> bytes:
    return b"F" + sized(b"".join(entry(*one) for one in entries))


def array(*values: bytes) -> bytes:
    return b"A" + sized(b"".join(values))


def nested(depth: int) -> bytes:
    value = b"V"
    for _ in range(depth):
        value = table((b"in", value))
    return value


def _integers(kind: bytes, form: str, bits: int, *, signed: bool) -> st.SearchStrategy[bytes]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.one_of(st.sampled_from([low, high]), st.integers(low, high)).map(lambda n: number(kind, form, n))


SCALARS = st.one_of(
    st.just(b"V"),
    st.booleans().map(lambda value: number(b"t", ">B", value)),
    _integers(b"b", ">b", 8, signed=True),
    _integers(b"B", ">B", 8, signed=False),
    _integers(b"s", ">h", 16, signed=True),
    _integers(b"u", ">H", 16, signed=False),
    _integers(b"I", ">i", 32, signed=True),
    _integers(b"i", ">I", 32, signed=False),
    _integers(b"l", ">q", 64, signed=True),
    _integers(b"T", ">Q", 64, signed=False),
    # RabbitMQ rejects values that are not finite.
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda value: number(b"f", ">f", value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: number(b"d", ">d", value)),
    st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1)).map(lambda pair: b"D" + struct.pack(">BI", *pair)),
    st.binary(max_size=300).map(text),
    st.text(max_size=50).map(lambda value: text(value.encode("utf-8", "surrogatepass"))),
    st.binary(max_size=300).map(lambda value: b"x" + sized(value)),
)
FOREIGN_NAMES = st.binary(min_size=0, max_size=255).filter(lambda name: name not in (b"CC", b"BCC"))
KNOWN_NAMES = st.sampled_from(
    [
        *(b"pillarbox-" + name for name in (b"attempts", b"deferrals", b"reason", b"queue")),
        b"pillarbox-first-failed-at",
        b"pillarbox-last-failed-at",
        b"schemaVersion",
        b"eventType",
        b"aggregateId",
        b"occurredAt",
        b"traceparent",
        b"x-death",
        b"x-delivery-count",
        b"x-first-death-queue",
        b"__TypeId__",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda values: array(*values)),
        st.lists(st.tuples(FOREIGN_NAMES, inner), max_size=4).map(lambda entries: table(*entries)),
    ),
    max_leaves=8,
)
HEADERS = st.none() | st.lists(st.tuples(FOREIGN_NAMES | KNOWN_NAMES, VALUES), max_size=6).map(tuple)
SHORTS = st.one_of(st.binary(max_size=255), st.text(max_size=60).map(lambda value: value.encode()))
OCTETS = st.integers(0, 255)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "content_type": st.sampled_from([b"application/json", b"text/plain", b"application/vnd.x+json"]) | SHORTS,
        "content_encoding": SHORTS,
        "delivery_mode": st.sampled_from([1, 2]),
        "priority": OCTETS,
        "correlation_id": SHORTS,
        "reply_to": SHORTS,
        "expiration": st.just(b"600000"),
        "message_id": SHORTS,
        "timestamp": st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
        "type": st.sampled_from([b"order.placed", b"order.failed"]) | SHORTS,
        "user_id": st.just(b"guest"),
        "app_id": SHORTS,
        "cluster_id": SHORTS,
    },
)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"",
            b"{",
            b"[" * 100_000,
            b'{"a": NaN, "a": -Infinity, "a": 1e999}',
            b'"\\ud800"',
            b"9" * 5000,
            b'{"event_id": "\\u0000", "event_type": ["a"]}',
            b"\xef\xbb\xbf{}",
        ]
    ),
)
MESSAGES = st.builds(Strange, properties=PROPERTIES, headers=HEADERS, body=BODIES)


GOOD = {"message_id": b"strange", "type": b"order.failed", "content_type": b"application/json"}
FOUND = [
    Strange(GOOD, ((b"caf\xe9", text(b"x")),)),
    Strange(GOOD, ((b"pillarbox-attempts", number(b"l", ">q", 2**63 - 1)),)),
    Strange(GOOD, ((b"pillarbox-deferrals", number(b"l", ">q", 2**63 - 1)),)),
    Strange(GOOD, ((b"when", number(b"T", ">Q", 2**63)),)),
    Strange(GOOD, ((b"deep", nested(3000)),)),
    Strange(GOOD, ((b"large", number(b"d", ">d", 1.7e308)),)),
    Strange(GOOD, ((b"price", b"D" + struct.pack(">BI", 255, 2**32 - 1)),)),
    Strange(GOOD, ((b"x-death", array(text(b"often"), table((b"queue", b"V")), number(b"T", ">Q", 2**64 - 1))),)),
    Strange(GOOD, ((b"x-delivery-count", number(b"l", ">q", 2**62)),)),
    Strange(GOOD, ((b"pillarbox-reason", array()), (b"pillarbox-first-failed-at", text(b"x" * 1000)))),
    Strange(GOOD, ((b"long", text(b"x" * 130_000)), (b"short", text(b"y")))),
    Strange(GOOD | {"message_id": b"\xff" * 255, "timestamp": 2**64 - 1, "priority": 255}),
    Strange(GOOD | {"message_id": b"body"}, body=b"x" * 10_000_000),
    Strange(body=b""),
    Strange(),
]
"""One of each kind that could stop a consumer."""


def publish_strange(broker: BlockingChannel, queue: str, messages: Sequence[Strange]) -> None:
    """Publish messages with confirms."""
    for message in messages:
        properties = cast(pika.BasicProperties, message)
        publish_confirmed(broker, "", queue, message.body, properties)
