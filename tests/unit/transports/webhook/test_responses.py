"""What a status means, how long to wait, and what an error shows of a response."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import GoneError, RejectedError, UnavailableError
from pillarbox.transports.webhook.responses import excerpt_of, result_of, retry_after_seconds

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def kind(status: int) -> type:
    return type(result_of(status, host="https://example"))


def test_every_status_has_its_result() -> None:
    assert {kind(status) for status in range(200, 300)} == {type(None)}
    assert {kind(status) for status in (408, 425, 429, *range(500, 600))} == {UnavailableError}
    assert kind(410) is GoneError
    others = set(range(300, 500)) - {408, 410, 425, 429}
    assert {kind(status) for status in others} == {RejectedError}


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://other.example/secret?token=1", "'other.example'"),
        ("/secret", "another path"),
        ("http://[", "cannot be read"),
    ],
)
def test_a_redirect_names_the_host_and_nothing_else_of_its_target(location: str, shown: str) -> None:
    result = result_of(302, host="https://example", location=location)
    assert shown in str(result)
    assert "secret" not in str(result)


def test_the_wait_is_read_as_seconds_or_as_a_date() -> None:
    later = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    waits = [retry_after_seconds(text, date=None, now=NOW, maximum=900) for text in ("7", " 120 ", later)]
    assert waits == [7, 120, 90]


@pytest.mark.parametrize("wrong", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_date_counts_from_the_clock_of_the_receiver(wrong: timedelta) -> None:
    date, later = format_datetime(NOW, usegmt=True), format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    assert retry_after_seconds(later, date=date, now=NOW + wrong, maximum=900) == 90


def test_a_date_counts_from_here_if_the_receiver_does_not_tell_its_time() -> None:
    later = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    assert {retry_after_seconds(later, date=date, now=NOW, maximum=900) for date in (None, "", "now, now")} == {90}


@pytest.mark.parametrize("text", ["100000", "9" * 400, format_datetime(NOW + timedelta(days=400), usegmt=True)])
def test_the_wait_has_a_maximum(text: str) -> None:
    assert retry_after_seconds(text, date=None, now=NOW, maximum=900) == 900


def test_a_date_in_the_past_is_no_wait() -> None:
    assert retry_after_seconds(format_datetime(NOW - timedelta(days=1)), date=None, now=NOW, maximum=900) == 0


@given(st.one_of(st.none(), st.text(max_size=40)), st.one_of(st.none(), st.text(max_size=40)))
def test_whatever_the_headers_say_the_wait_is_bounded_or_none(text: str | None, date: str | None) -> None:
    wait = retry_after_seconds(text, date=date, now=NOW, maximum=900)
    assert wait is None or 0 <= wait <= 900


@given(st.binary(max_size=9000))
def test_an_excerpt_is_one_short_printable_line(content: bytes) -> None:
    line = excerpt_of(content, secrets=(), body=b"")
    assert line.isprintable()
    assert len(line) <= 301


def test_an_excerpt_shows_neither_the_secrets_of_the_request_nor_its_body() -> None:
    shown = excerpt_of(b"no: Bearer tok3n is bad", secrets=["Bearer tok3n", "tok3n"], body=b"the body")
    assert shown == "no: *** is bad"
    assert excerpt_of(b"cannot parse: the body", secrets=(), body=b"the body") == ""
    assert excerpt_of(b"the bo", secrets=(), body=b"the body") == ""
