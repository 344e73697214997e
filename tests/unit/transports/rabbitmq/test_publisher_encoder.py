"""The encoder writes what pika would have written, and leaves to pika what it does not take."""

import struct
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.exceptions import AMQPError

from pillarbox.core.errors import PermanentError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport, publisher
from pillarbox.transports.rabbitmq.confirms import Publication
from pillarbox.transports.rabbitmq.publisher import PublishEncoder, properties_of
from tests.unit.transports.rabbitmq.scripted import FRAME_MAX, frames_in, scripted

NOW = 1_760_000_000
CHANNEL = 7
TEXTS = st.text(max_size=40) | st.sampled_from(["", "x" * 255, "ä" * 127, "\0", "😀"])
LONG_TEXTS = st.sampled_from(["y" * 4_000, "ä" * 4_000])
IMPOSSIBLE_TEXTS = st.sampled_from(["x" * 256, "ä" * 128, "\ud800"])
OWN_NAMES = st.sampled_from(["correlationId", "schemaVersion", "eventType", "mine"])
VERSIONS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1])
IMPOSSIBLE_VERSIONS = st.sampled_from([2**63, -(2**63) - 1, 2**64])
SIZES = st.integers(0, 400) | st.integers(-10, 10).map(lambda more: 16_384 + more) | st.just(50_000)


class Published(NamedTuple):
    """A message as a broker reads it."""

    channel: int
    exchange: Any
    routing_key: Any
    mandatory: bool
    properties: dict[str, Any]
    types: dict[str, type]
    """Of the headers."""
    body_size: int
    bodies: list[bytes]


class Case(NamedTuple):
    outgoing: Outgoing
    exchange: str
    routing_key: str
    frame_max: int

    def __repr__(self) -> str:
        """Hypothesis takes a long one for a mistake."""
        return f"Case({', '.join(repr(field)[:2_000] for field in self)})"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One in two has something that may be impossible."""
    possible = draw(st.booleans())
    texts = TEXTS if possible else TEXTS | IMPOSSIBLE_TEXTS
    made = outgoing(
        draw(texts),
        RabbitMQTransport.to(routing_key="any"),
        body=b"x" * draw(SIZES),
        content_type=draw(texts),
        headers=draw(st.dictionaries(OWN_NAMES | texts, texts | LONG_TEXTS, max_size=8)),
        event_type=draw(texts),
    )
    message = made.message._replace(
        schema_version=draw(VERSIONS if possible else VERSIONS | IMPOSSIBLE_VERSIONS),
        correlation_id=draw(st.none() | texts),
    )
    frame_max = draw(st.sampled_from([16_384, FRAME_MAX]))
    return Case(made._replace(message=message), draw(texts), draw(texts), frame_max)


def plain(*, frame_max: int = FRAME_MAX, **changes: Any) -> Case:
    made = outgoing("e1", RabbitMQTransport.to(routing_key="q"), headers={"mine": "kept"})
    fields = {name: changes.pop(name) for name in list(changes) if name in made._fields}
    message = made.message._replace(**changes)
    return Case(made._replace(message=message)._replace(**fields), "x", "q", frame_max)


def read(data: bytes) -> Published:
    method, header, *bodies = frames_in(data)
    assert {frame.channel_number for frame in (method, header, *bodies)} == {method.channel_number}
    properties = vars(header.properties)
    headers = properties["headers"]
    return Published(
        method.channel_number,
        method.method.exchange,
        method.method.routing_key,
        method.method.mandatory and not method.method.immediate,
        properties,
        {name: type(value) for name, value in headers.items()},
        header.body_size,
        [frame.fragment for frame in bodies],
    )


def by_pika(case: Case) -> Published | None:
    """None: refused, and not a byte of it written."""
    with scripted(AsyncioConnection, case.frame_max) as (_, broker):
        channel = broker.channel(CHANNEL)
        broker.stream.written.clear()
        try:
            properties = properties_of(case.outgoing, NOW, case.frame_max)
            channel.basic_publish(case.exchange, case.routing_key, case.outgoing.body, properties, mandatory=True)
        except (PermanentError, AMQPError, ValueError, TypeError, struct.error):
            assert not broker.stream.written
            return None
        return read(bytes(broker.stream.written))


def by_encoder(case: Case) -> Published | None:
    """None: left to pika."""
    encoder = PublishEncoder(CHANNEL, case.frame_max)
    given = [Publication(0, case.outgoing, case.exchange, case.routing_key)]
    first = encoder.encode(given, NOW)
    # The second time everything that can be is taken from the caches.
    assert encoder.encode(given, NOW) == first
    return None if first is None else read(b"".join(first))


def may_be_left_to_pika(case: Case) -> bool:
    """Although pika takes it: what is close to the limit, or has a header that is not sent and is not UTF-8."""
    headers = case.outgoing.headers.items()
    large = sum(4 * len(name) + 4 * len(value) + 6 for name, value in headers) + 8_300 > case.frame_max
    return large or "\ud800" in case.outgoing.headers.get("correlationId", "") + case.outgoing.headers.get(
        "schemaVersion", ""
    )


@given(cases())
@example(plain())
@example(plain(headers={f"h{n}": "x" * 8_192 for n in range(14)}))
@example(plain(headers={f"h{n}": "x" * 8_192 for n in range(16)}))
@example(plain(headers={"correlationId": "x" * (FRAME_MAX - 8_192)}))
@example(plain(headers={"schemaVersion": "9", "eventType": "forged"}))
@example(plain(headers={"correlationId": "\ud800", "mine": "x" * 4_000}, frame_max=16_384))
@example(plain(schema_version=2**31))
@example(plain(schema_version=-(2**31) - 1))
@example(plain(body=b""))
def test_a_broker_reads_the_bytes_that_pika_would_have_sent_and_pika_handles_what_it_rejects(case: Case) -> None:
    expected = by_pika(case)
    found = by_encoder(case)
    if found is not None:
        assert found == expected
    else:
        assert expected is None or may_be_left_to_pika(case)


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": True},
        {"schema_version": "1"},
        {"schema_version": None},
        {"correlation_id": 7},
        {"event_id": None},
        {"event_type": None},
        {"body": "text"},
        {"body": bytearray(b"bytes")},
        {"content_type": None},
        {"headers": {"n": 1}},
        {"headers": {"n": b"raw"}},
    ],
    ids=str,
)
def test_values_of_another_type_are_left_to_pika(changes: dict[str, Any]) -> None:
    assert by_encoder(plain(**changes)) is None


def test_a_version_is_not_taken_from_the_cache_for_its_equal_of_another_type() -> None:
    encoder = PublishEncoder(CHANNEL, FRAME_MAX)
    number, truth = plain(schema_version=1), plain(schema_version=True)
    assert encoder.encode([Publication(0, number.outgoing, "x", "q")], NOW) is not None
    assert encoder.encode([Publication(0, truth.outgoing, "x", "q")], NOW) is None


def test_several_messages_are_encoded_together_or_left_to_pika_together() -> None:
    encoder = PublishEncoder(CHANNEL, FRAME_MAX)
    several = [Publication(n, plain(event_id=f"e{n}").outgoing, "x", f"q{n}") for n in range(3)]
    pieces = encoder.encode(several, NOW)
    assert pieces is not None
    found = [read(b"".join(encoder.encode([one], NOW) or ())) for one in several]
    assert [one.routing_key for one in found] == ["q0", "q1", "q2"]
    assert b"".join(pieces) == b"".join(b"".join(encoder.encode([one], NOW) or ()) for one in several)
    assert encoder.encode([*several, Publication(3, plain(schema_version=True).outgoing, "x", "q")], NOW) is None


def test_caches_are_bounded_and_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "_CACHE_SIZE", 10)
    encoder = PublishEncoder(CHANNEL, FRAME_MAX)
    for n in range(100):
        headers = {f"name-{n}": f"{n}", "aggregateType": f"kind-{n}"}
        one = plain(event_type=f"type-{n}", schema_version=n, headers=headers)
        pieces = encoder.encode([Publication(0, one.outgoing, "x", f"key-{n}")], NOW)
        assert pieces is not None
        found = read(b"".join(pieces))
        assert (found.routing_key, found.properties["type"]) == (f"key-{n}", f"type-{n}")
        assert found.properties["headers"] == {**headers, "schemaVersion": n}
    caches = [value for value in vars(encoder).values() if isinstance(value, dict)]
    assert len(caches) == 5
    assert all(0 < len(cache) <= 10 for cache in caches)
