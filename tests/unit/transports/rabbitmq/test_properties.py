"""Properties as they came: what can be read is read, and everything is passed on as it was."""

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika import BasicProperties

from pillarbox.core.source import Incoming
from pillarbox.transports.rabbitmq.properties import EncodedProperties, ReceivedMessage, ReceivedProperties
from tests.integration.consume.strange import GOOD, MESSAGES, Strange, array, entry, nested, number, sized, text

HEADERS, MESSAGE_ID = 0x2000, 0x0080
"""The flags of these properties."""
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def received(message: BasicProperties | Strange) -> ReceivedProperties:
    return ReceivedProperties(b"".join(message.encode()))


def again(properties: EncodedProperties) -> ReceivedProperties:
    return ReceivedProperties(b"".join(properties.encode()))


def incoming_of(properties: ReceivedProperties) -> Incoming:
    return ReceivedMessage(1, "q", False, properties, b"").incoming()


def headers_of(*headers: tuple[bytes, bytes]) -> Any:
    return received(Strange(headers=headers)).headers


def test_the_bytes_that_pika_wrote_are_read() -> None:
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
def test_unreadable_headers_are_omitted_and_passed_on(header: tuple[bytes, bytes]) -> None:
    strange = Strange(headers=((b"before", text(b"1")), header, (b"after", text(b"2"))))
    found = received(strange)
    assert found.headers.keys() >= {"before", "after"}
    assert found.moved(frame_max=131_072).encode()[1] == strange.encode()[1]


def test_counts_have_a_bound_and_only_numbers_count() -> None:
    for value, attempts in ((number(b"l", ">q", 2**63 - 1), 2**31 - 1), (b"t\x01", 0), (number(b"l", ">q", -1), 0)):
        assert incoming_of(received(Strange(headers=((b"pillarbox-attempts", value),)))).attempts == attempts


def test_properties_that_do_not_fit_a_frame_lose_the_longest_header() -> None:
    strange = Strange(headers=((b"long", text(b"x" * 4000)), (b"short", text(b"y"))))
    found = again(received(strange).moved({"note": "z" * 100}, frame_max=4096))
    assert found.headers == {"short": "y", "note": "z" * 100}
    assert sum(map(len, received(strange).moved({"note": "z"}, frame_max=4096).encode())) <= 4096 - 20


@given(MESSAGES)
def test_any_message_is_read_and_moved(message: Strange) -> None:
    found = received(message)
    before, after = incoming_of(found), incoming_of(again(found.moved(frame_max=131_072)))
    assert (after.event_id, after.event_type, after.attempts) == (before.event_id, before.event_type, before.attempts)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(encoded: bytes) -> None:
    for raw in (encoded, struct.pack(">HI", 0x2000, len(encoded)) + encoded):
        (found := ReceivedProperties(raw)).moved(frame_max=4096).encode()
        incoming_of(found)


def test_flags_of_undefined_properties_are_skipped() -> None:
    assert ReceivedProperties(struct.pack(">HHH", MESSAGE_ID | 1, 0x8001, 0x4000) + b"\x02e1").message_id == "e1"


@pytest.mark.parametrize("encoded", [b"\x05e1", b"\x02e", b""])
def test_properties_that_end_early_are_none(encoded: bytes) -> None:
    assert ReceivedProperties(struct.pack(">H", MESSAGE_ID) + encoded).message_id is None


def test_whole_numbers_keep_their_sign_and_their_size() -> None:
    forms = {b"b": ">b", b"B": ">B", b"s": ">h", b"U": ">h", b"u": ">H", b"I": ">i", b"i": ">I", b"l": ">q", b"L": ">q"}
    for kind, form in forms.items():
        bits = 8 * struct.calcsize(form)
        signed = form[1].islower()
        for value in (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1):
            assert headers_of((b"n", number(kind, form, value))) == {"n": value}
    assert headers_of((b"price", b"D" + struct.pack(">Bi", 2, -150))) == {"price": Decimal("-1.50")}


@pytest.mark.parametrize(
    ("inner", "read"),
    [
        ([text(b"a"), number(b"T", ">Q", 2**63), text(b"\xff"), b"D\xff" + b"\x7f" * 4, text(b"b")], ["a", "b"]),
        ([text(b"a"), b"?", text(b"b")], ["a"]),
        ([text(b"a"), b"S\x00\x00\x00\x09b"], ["a"]),
        ([text(b"a"), b"S\x00"], ["a"]),
    ],
    ids=["values", "kind", "length", "end"],
)
def test_readable_parts_of_tables_and_arrays_are_read(inner: list[bytes], read: list[str]) -> None:
    found = [value for value in headers_of((b"in", array(*inner)))["in"] if isinstance(value, str)]
    assert found == read
    entries = b"".join(entry(f"{n}".encode(), value) for n, value in enumerate(inner))
    table = headers_of((b"in", b"F" + sized(entries)))["in"]
    assert [value for value in table.values() if isinstance(value, str)] == read
    raw = ReceivedProperties(struct.pack(">H", HEADERS) + sized(entries))
    assert [value for value in raw.headers.values() if isinstance(value, str)] == read


def test_properties_that_the_broker_would_act_upon_again_are_removed() -> None:
    kept = {"content_type": b"c", "content_encoding": b"e", "correlation_id": b"r", "reply_to": b"to", "type": b"t"}
    kept |= {"message_id": b"e1", "app_id": b"a"}
    taken_off = {"expiration": b"1", "user_id": b"guest", "cluster_id": b"c"}
    brokers_own = (b"x-death", b"x-delivery-count", b"CC", b"BCC", b"x-first-death-queue", b"x-last-death-reason")
    headers = ((b"x-own", text(b"1")), *((name, text(b"2")) for name in brokers_own), (b"note", text(b"before")))
    strange = Strange(kept | taken_off | {"delivery_mode": 1, "priority": 7, "timestamp": 5}, headers)
    encoded = b"".join(received(strange).moved({"note": "after", "count": 3}, frame_max=131_072).encode())
    found = BasicProperties()
    found.decode(encoded)
    assert {name: getattr(found, name) for name in kept} == {name: value.decode() for name, value in kept.items()}
    assert {getattr(found, name) for name in taken_off} == {None}
    assert (found.delivery_mode, found.priority, found.timestamp) == (2, 7, 5)
    assert list((found.headers or {}).items()) == [("x-own", "1"), ("note", "after"), ("count", 3)]
    assert encoded.count(b"note") == 1


def test_headers_are_left_out_only_where_they_do_not_fit_and_keep_their_order() -> None:
    strange = Strange(GOOD, tuple((name, text(b"x" * size)) for name, size in ((b"m", 50), (b"l", 90), (b"s", 10))))
    whole = sum(map(len, received(strange).moved({"note": "z"}, frame_max=131_072).encode()))
    for frame_max, names in ((whole + 20, "mls"), (whole + 19, "ms"), (whole + 19 - 100, "s"), (whole - 140, "")):
        found = received(strange).moved({"note": "z"}, frame_max=frame_max)
        assert sum(map(len, found.encode())) <= max(frame_max - 20, whole - 168)
        assert list(again(found).headers) == [*names, "note"]


def test_an_added_header_is_valid_text() -> None:
    assert again(received(Strange()).moved({"note": "a\ud800"}, frame_max=4096)).headers == {"note": "a\\ud800"}


@pytest.mark.parametrize(
    ("first", "kept"), [(text(b"2026-11-30T12:00:00Z"), True), (text(b"x" * 1000), False), (b"V", False)]
)
def test_a_failure_is_written_within_bounds_and_the_first_one_kept(first: bytes, kept: bool) -> None:
    found = received(Strange(GOOD, ((b"pillarbox-first-failed-at", first),)))
    noted = found.failed(incoming_of(found), queue="q", reason="é" * 5000, counted=True, frame_max=4096)
    headers = again(noted).headers
    assert (headers["pillarbox-reason"], headers["pillarbox-attempts"]) == ("é" * 500, 1)
    noted_at = headers["pillarbox-last-failed-at"]
    assert headers["pillarbox-first-failed-at"] == ("2026-11-30T12:00:00Z" if kept else noted_at)
