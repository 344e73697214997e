"""Properties as they came: what can be read is read, and everything is passed on as it was."""

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties

from pillarbox.transports.rabbitmq.received import Encoded, Received
from pillarbox.transports.rabbitmq.source.notes import incoming_of, moved
from tests.integration.consume.strange import MESSAGES, Strange, nested, number, text

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def received(message: BasicProperties | Strange) -> Received:
    return Received(b"".join(message.encode()))


def again(properties: Encoded) -> Received:
    return Received(b"".join(properties.encode()))


def headers_of(*headers: tuple[bytes, bytes]) -> Any:
    return received(Strange(headers=headers)).headers


def test_what_pika_wrote_is_read() -> None:
    headers: dict[str, Any] = {
        "text": "é",
        "bytes": b"\xff",
        "yes": True,
        "number": -5,
        "price": Decimal("1.5"),
        "when": NOON,
        "none": None,
        "list": [1, ["a"], {"b": "c"}],
        "table": {"a": {"b": 2**40}},
    }
    found = received(BasicProperties(message_id="e1", type="t", content_type="c", correlation_id="r", headers=headers))
    assert (found.message_id, found.type, found.content_type, found.correlation_id) == ("e1", "t", "c", "r")
    assert found.headers == headers


def test_numbers_keep_their_fraction() -> None:
    assert headers_of((b"d", number(b"d", ">d", 1.5)), (b"f", number(b"f", ">f", 0.25))) == {"d": 1.5, "f": 0.25}


@pytest.mark.parametrize(
    "header",
    [(b"caf\xe9", b"V"), (b"deep", nested(3000)), (b"when", number(b"T", ">Q", 2**63)), (b"bytes", text(b"\xff"))],
    ids=["name", "depth", "time", "text"],
)
def test_what_cannot_be_read_is_left_out_and_passed_on(header: tuple[bytes, bytes]) -> None:
    strange = Strange(headers=((b"before", text(b"1")), header, (b"after", text(b"2"))))
    found = received(strange)
    assert found.headers.keys() >= {"before", "after"}
    assert moved(found, frame_max=131_072).encode()[1] == strange.encode()[1]


def test_counts_have_a_bound_and_only_numbers_count() -> None:
    for value, attempts in ((number(b"l", ">q", 2**63 - 1), 2**31 - 1), (b"t\x01", 0), (number(b"l", ">q", -1), 0)):
        assert incoming_of(received(Strange(headers=((b"pillarbox-attempts", value),))), b"").attempts == attempts


def test_what_a_frame_cannot_hold_with_our_notes_loses_its_longest_header() -> None:
    strange = Strange(headers=((b"long", text(b"x" * 4000)), (b"short", text(b"y"))))
    found = again(moved(received(strange), {"note": "z" * 100}, frame_max=4096))
    assert found.headers == {"short": "y", "note": "z" * 100}
    assert sum(map(len, moved(received(strange), {"note": "z"}, frame_max=4096).encode())) <= 4096 - 20


@given(MESSAGES)
def test_any_message_is_read_and_moved(message: Strange) -> None:
    found = received(message)
    before, after = incoming_of(found, b""), incoming_of(again(moved(found, frame_max=131_072)), b"")
    assert (after.event_id, after.event_type, after.attempts) == (before.event_id, before.event_type, before.attempts)


@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_it_fail(encoded: bytes) -> None:
    for raw in (encoded, struct.pack(">HI", 0x2000, len(encoded)) + encoded):
        moved(found := Received(raw), frame_max=4096).encode()
        incoming_of(found, b"")
