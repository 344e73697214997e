"""Entries of any producer can be read, and keep their fields when they are moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.redis.connection import ErrorReply
from pillarbox.transports.redis.dead_letters import dead_letter_of
from pillarbox.transports.redis.properties import ReceivedEntry

OURS = [b"pillarbox-attempts", b"pillarbox-last-failed-at"]
PAIRS = st.lists(
    st.tuples(
        st.sampled_from([b"id", b"type", b"body", b"header:h", *OURS]) | st.binary(max_size=20),
        st.binary(max_size=40),
    )
)


def entry(*fields: bytes) -> ReceivedEntry:
    return ReceivedEntry("orders", b"1-0", fields)


@given(PAIRS)
def test_no_entry_raises_and_a_moved_one_keeps_the_fields_of_its_producer(pairs: list[tuple[bytes, bytes]]) -> None:
    received = entry(*(part for pair in pairs for part in pair))
    incoming = received.incoming()
    assert dead_letter_of(received).size == len(incoming.body)
    moved = received.failed(incoming, queue="q", group="g", reason="r", counted=True)
    fields = iter(moved)
    kept = [pair for pair in zip(fields, fields, strict=True) if isinstance(pair[0], bytes)]
    assert kept == [pair for pair in pairs if pair[0] not in OURS]


def test_id_and_type_of_a_structured_cloudevent_are_shown_with_its_whole_body() -> None:
    body = b'{"specversion":"1.0","id":"c1","type":"shop.order","source":"/shop","data":1}'
    found = dead_letter_of(entry(b"content_type", b"application/cloudevents+json", b"body", body))
    assert (found.event_id, found.event_type, found.body) == ("c1", "shop.order", body)
    assert found.content_type == "application/cloudevents+json"


def test_a_cloudevent_that_cannot_be_read_has_no_id() -> None:
    found = dead_letter_of(entry(b"content_type", b"application/cloudevents+json", b"body", b"{"))
    assert (found.event_id, found.size) == (None, 1)


def test_a_failure_is_counted_and_the_time_of_the_first_one_stays() -> None:
    received = entry(b"id", b"a", b"pillarbox-attempts", b"2", b"pillarbox-first-failed-at", b"2026-01-01T00:00:00Z")
    incoming = received.incoming()
    moved = received.failed(incoming, queue="orders.g.retry", group="g", reason="x" * 5000, counted=False)
    fields = dict(zip(moved[::2], moved[1::2], strict=True))
    assert (incoming.attempts, fields["pillarbox-attempts"], fields["pillarbox-deferrals"]) == (2, "2", "1")
    assert fields["pillarbox-first-failed-at"] == "2026-01-01T00:00:00Z"
    assert len(fields["pillarbox-reason"]) == 1000
    assert fields[b"id"] == b"a"


@pytest.mark.parametrize("count", [b"-1", b"1.5", b"x", b"", b"\xff", b"9" * 30])
def test_a_count_that_is_no_number_is_zero(count: bytes) -> None:
    assert entry(b"pillarbox-attempts", count).incoming().attempts == 0


def test_of_a_field_that_comes_twice_the_last_is_read_and_both_are_kept() -> None:
    received = entry(b"id", b"a", b"id", b"b")
    incoming = received.incoming()
    assert incoming.event_id == "b"
    assert received.failed(incoming, queue="q", group="g", reason="r", counted=True)[-4:] == [b"id", b"a", b"id", b"b"]


def test_an_error_reply_shows_no_arguments_of_an_unknown_command() -> None:
    reply = ErrorReply("ERR unknown command 'HELLO', with args beginning with: '2' 'AUTH' 'app' 'top-secret'")
    assert (reply.code, "top-secret" in str(reply)) == ("ERR", False)
    assert ErrorReply("WRONGTYPE Operation against a key").code == "WRONGTYPE"
    assert ErrorReply("wrong number of arguments").code == "ERR"
