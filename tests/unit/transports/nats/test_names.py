"""Names, subjects, headers and URLs of NATS, without a server."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from pillarbox.core.errors import ConfigurationError
from pillarbox.schemes import open_source, open_transport
from pillarbox.transports.nats import NatsAddress, NatsSource, NatsTransport, Stream
from pillarbox.transports.nats.headers import (
    PulledMessage,
    copied,
    decode,
    encode_header,
    encode_name,
    encode_value,
    incoming_of,
    pulled,
    read_block,
)
from pillarbox.transports.nats.plugin import NatsEndpoint, NatsOptions
from pillarbox.transports.nats.topology import ConsumerNames, check_streams, covers, stream_for

ID = "ORDERS:41:1700000000"
"""Of a copy of the message that `delivered` makes."""
TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT.filter(bool), TEXT)
def test_a_header_is_printable_ascii_on_the_way_and_the_same_afterwards(name: str, value: str) -> None:
    line = encode_header(name, value)
    assert line.isascii()
    assert line.removesuffix("\r\n").isprintable()
    [(sent_name, sent_value)] = read_block(f"NATS/1.0\r\n{line}\r\n".encode()).items()
    assert (decode(sent_name), decode(sent_value)) == (name, value)


def test_a_plain_header_is_not_changed() -> None:
    assert encode_header("tenant-id", "a b=c; d") == "tenant-id: a b=c; d\r\n"


def test_names_that_the_server_acts_upon_are_encoded() -> None:
    assert [encode_name(name) for name in ("Nats-Rollup", "nats-x", "natsy")] == ["%4Eats-Rollup", "%6Eats-x", "natsy"]


@given(st.lists(st.text("ab_.-é*", min_size=1), min_size=2, max_size=2, unique=True))
def test_two_subjects_never_share_the_name_of_a_stream(subjects: list[str]) -> None:
    first, second = map(stream_for, subjects)
    assert first != second
    for name in (first, second):
        Stream(name=name, subjects=["x"])


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.>", "a.>", True),
        ("a.*", "a.>", False),
        (">", "a", True),
        ("a", "a.b", False),
    ],
)
def test_a_pattern_covers_its_subjects(pattern: str, subject: str, expected: bool) -> None:
    assert covers(pattern, subject) is expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a.b"},
        {"name": "a b"},
        {"name": ""},
        {"name": "é"},
        {"subjects": []},
        {"subjects": ["a..b"]},
        {"subjects": ["a.>.b"]},
        {"subjects": ["a b"]},
        {"replicas": 6},
        {"replicas": 0},
        {"storage": "tape"},
        {"duplicate_window": "2h", "max_age": "1h"},
        {"max_msgs": 0},
        {"discard": "all"},
    ],
)
def test_a_stream_that_nats_would_refuse_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        Stream(**({"name": "a", "subjects": ["a"]} | wrong))  # type: ignore[arg-type]


def test_streams_of_one_name_or_one_subject_are_refused() -> None:
    one = Stream(name="a", subjects=["orders.>"])
    with pytest.raises(ConfigurationError, match="twice"):
        check_streams([one, Stream(name="a", subjects=["x"])])
    with pytest.raises(ConfigurationError, match="overlap"):
        check_streams([one, Stream(name="b", subjects=["orders.placed"])])
    with pytest.raises(ConfigurationError, match="overlap"):
        check_streams([Stream(name="b", subjects=["orders.placed"]), one])


def test_a_short_max_age_shortens_the_default_duplicate_window() -> None:
    config = Stream(name="a", subjects=["a"], max_age="10s").config()
    assert (config["max_age"], config["duplicate_window"]) == (10_000_000_000, 10_000_000_000)


@pytest.mark.parametrize("subject", ["", "a b", "a..b", "a.*", ">", "a.{nothing}", "{key", ".{key}", "x" * 1001])
def test_a_subject_that_cannot_be_sent_to_is_refused(subject: str) -> None:
    with pytest.raises(ConfigurationError):
        NatsAddress(subject=subject)


def test_an_address_of_a_stream_with_an_impossible_name_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        NatsAddress(subject="a", expected_stream="a.b")


def test_more_replicas_than_nats_allows_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="up to 5"):
        NatsOptions(replicas=6)


@pytest.mark.parametrize(
    ("url", "servers", "credentials"),
    [
        ("nats://localhost", (("localhost", 4222),), (None, None, None)),
        ("nats://", (("localhost", 4222),), (None, None, None)),
        ("nats://app:p%40ss@a:1,b:2", (("a", 1), ("b", 2)), ("app", "p@ss", None)),
        ("nats://u:p@a:1,nats://u:p@b", (("a", 1), ("b", 4222)), ("u", "p", None)),
        ("tls://t%2Fken@[::1]:5", (("::1", 5),), (None, None, "t/ken")),
    ],
)
def test_servers_and_credentials_are_read_from_the_url(
    url: str, servers: tuple[tuple[str, int], ...], credentials: tuple[str | None, str | None, str | None]
) -> None:
    endpoint = NatsEndpoint.parse(url)
    assert endpoint.servers == servers
    assert (endpoint.user, endpoint.password, endpoint.token) == credentials
    assert endpoint.secure is url.startswith("tls")
    assert not any(one in f"{endpoint} {endpoint!r}" for one in credentials if one and len(one) > 1)


def delivered(headers: Mapping[str, str], body: bytes = b"body") -> PulledMessage:
    block = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    message = pulled("work", b"orders", b"$JS.ACK.ORDERS.billing.2.41.43.1700000000.0", body, block.encode())
    assert message is not None
    return message


def test_the_place_and_the_number_of_a_delivery_are_read_from_its_reply_subject() -> None:
    message = delivered({})
    assert (message.stream, message.sequence, message.stored_at, message.delivered) == ("ORDERS", 41, "1700000000", 2)
    long = b"$JS.ACK.domain.hash.ORDERS.billing.2.41.43.1700000000.0.token"
    message_of_domain = pulled("work", b"orders", long, b"", None)
    assert message_of_domain is not None
    assert (message_of_domain.stream, message_of_domain.sequence, message_of_domain.delivered) == ("ORDERS", 41, 2)
    assert pulled("work", b"orders", b"_INBOX.x", b"", None) is None


def test_a_copy_keeps_body_and_headers_and_names_the_original() -> None:
    message = delivered({"eventId": "e1", "tenant": "%C3%BC", "Nats-Msg-Id": "x", "pillarbox-due": "1"})
    copy = copied(message, message.sent_headers(), {"pillarbox-due": None, "pillarbox-attempts": "1"}, 10_000)
    found = read_block(copy.headers)
    assert copy.body == b"body"
    assert found == {"eventId": "e1", "tenant": "%C3%BC", "Nats-Msg-Id": ID, "pillarbox-attempts": "1"}
    assert incoming_of(found, copy.body).headers["tenant"] == "ü"


def test_a_copy_that_is_too_large_shortens_the_reason_and_leaves_out_other_headers_of_ours() -> None:
    message = delivered({"eventId": "e1", "tenant": "t" * 30}, b"x" * 500)
    changed = {"pillarbox-attempts": "1", "pillarbox-reason": "%C3%A9" * 50}
    theirs = {"eventId": "e1", "tenant": "t" * 30}
    whole = copied(message, message.sent_headers(), changed, 1000)
    least = copied(message, message.sent_headers(), {}, 1000)
    for limit in range(len(least.headers) + 500 + 40, len(whole.headers) + 500 + 1):
        copy = copied(message, message.sent_headers(), changed, limit)
        assert len(copy.headers) + len(copy.body) <= limit
        found = read_block(copy.headers)
        assert copy.complete
        assert (found["pillarbox-attempts"], found["Nats-Msg-Id"]) == ("1", ID)
        assert whole.headers.startswith(copy.headers.rstrip(b"\r\n"))
        assert "%" not in found.get("pillarbox-reason", "")[-2:]
    for limit in range(len(message.block or b"") + 500, len(least.headers) + 500):
        copy = copied(message, message.sent_headers(), changed, limit)
        assert len(copy.headers) + len(copy.body) <= limit
        found = read_block(copy.headers)
        assert not copy.complete
        assert (copy.body, {name: found[name] for name in theirs}) == (message.body, theirs)


def test_the_id_of_a_message_of_another_producer_is_its_message_id() -> None:
    incoming = incoming_of({"Nats-Msg-Id": "m%201"}, b"")
    assert (incoming.event_id, dict(incoming.headers)) == ("m 1", {})


def test_the_message_id_of_a_copy_is_not_the_id_of_an_event() -> None:
    assert incoming_of({"Nats-Msg-Id": ID}, b"", is_copy=True).event_id is None


@pytest.mark.parametrize("value", ["-1", "x", "", "1e3", "٣", "9" * 30])
def test_a_count_that_is_no_number_is_zero(value: str) -> None:
    assert incoming_of({"pillarbox-attempts": value}, b"").attempts == 0


def test_a_group_must_be_a_legal_name() -> None:
    with pytest.raises(ConfigurationError, match="group"):
        ConsumerNames(stream="S", group="a.b")


@given(TEXT)
def test_a_value_never_begins_or_ends_with_a_space(value: str) -> None:
    encoded = encode_value(value)
    assert encoded == encoded.strip()


def test_a_release_of_nats_py_without_the_internals_that_are_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    NatsTransport("nats://localhost")
    monkeypatch.delattr(Client, "_process_op_err")
    with pytest.raises(ConfigurationError, match="lacks _process_op_err"):
        NatsTransport("nats://localhost")


def test_a_source_by_its_url_is_a_subject_and_shows_no_password() -> None:
    source = open_source("nats://app:secret@n1,n2:5", "order.placed", group="billing", prefetch=3)
    assert isinstance(source, NatsSource)
    assert repr(source) == "<NatsSource 'order.placed', group 'billing' at n1:4222, n2:5>"
    with pytest.raises(ConfigurationError, match="prefetch is 0"):
        open_source("nats://n1", "order.placed", prefetch=0)


def test_streams_of_a_transport_may_be_tables() -> None:
    tables = [{"name": "ORDERS", "subjects": ["orders.>"]}, Stream(name="AUDIT", subjects=["audit"])]
    assert isinstance(open_transport("nats://n1", streams=tables), NatsTransport)
