"""Responses of HTTP/1.1: where they end, what is kept of them, and what is refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.webhook import http1
from pillarbox.transports.webhook.http1 import MAX_HEADERS, InvalidResponseError, Response, ResponseParser
from pillarbox.transports.webhook.responses import EXCERPT_BYTES

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
RESPONSES = {
    "no content": (b"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n", Response(204, None, None, b"", "now"), True),
    "a length": (OK + b"Content-Length: 5\r\n\r\nhello", Response(200, None, None, b"hello"), True),
    "no body, though a length": (b"HTTP/1.1 304 \r\ncontent-length: 7\r\n\r\n", Response(304, None, None, b""), True),
    "chunks": (
        CHUNKED + b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n",
        Response(200, None, None, b"abcde"),
        True,
    ),
    "early hints": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n",
        Response(200, None, None, b""),
        True,
    ),
    "headers": (
        b"HTTP/1.1 503 Busy\r\nRETRY-AFTER:  42 \r\nlocation: /x\r\nX-Location: no\r\nContent-Length: 0\r\n\r\n",
        Response(503, "42", "/x", b""),
        True,
    ),
    "line feeds alone": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", Response(200, None, None, b"hi"), True),
    "a connection that closes": (
        OK + b"Connection: keep-alive, Close\r\nContent-Length: 0\r\n\r\n",
        Response(200, None, None, b""),
        False,
    ),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Response(200, None, None, b""), False),
    "an upgrade": (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", Response(101, None, None, b""), False),
}


def parsed(*parts: bytes) -> tuple[ResponseParser, list[bool]]:
    parser = ResponseParser()
    return parser, [parser.feed(part) for part in parts]


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_ends_where_it_says(name: str) -> None:
    raw, expected, reusable = RESPONSES[name]
    parser, enough = parsed(raw)
    assert (enough, parser.response(), parser.reusable) == ([True], expected, reusable)


@pytest.mark.parametrize("name", RESPONSES)
@given(data=st.data())
def test_it_does_not_matter_how_the_bytes_arrive(name: str, data: st.DataObject) -> None:
    raw, expected, reusable = RESPONSES[name]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    parts = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    parser, enough = parsed(*parts)
    assert enough == [False] * (len(parts) - 1) + [True]
    assert (parser.response(), parser.reusable) == (expected, reusable)


class CountedSearch:
    """A pattern that counts the bytes that it searches."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.searched = 0

    def search(self, data: bytes, start: int = 0) -> re.Match[bytes] | None:
        self.searched += len(data) - start
        return self._pattern.search(data, start)


def test_headers_that_arrive_byte_by_byte_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = CountedSearch(http1._HEADERS_END)
    monkeypatch.setattr(http1, "_HEADERS_END", counted)
    raw = OK + b"X: " + b"x" * 10_000 + b"\r\nContent-Length: 0\r\n\r\n"
    parser, enough = parsed(*(raw[at : at + 1] for at in range(len(raw))))
    assert (enough[-1], parser.status) == (True, 200)
    assert counted.searched <= 5 * len(raw)


@given(st.binary(max_size=300), st.sampled_from([b"", OK, CHUNKED, OK + b"Content-Length: 9\r\n\r\n"]))
def test_no_bytes_raise_another_error(raw: bytes, start: bytes) -> None:
    parser = ResponseParser()
    try:
        parser.feed(start + raw)
    except InvalidResponseError:
        return
    if parser.status:
        assert len(parser.response().body) <= EXCERPT_BYTES


@pytest.mark.parametrize(
    "raw",
    [
        b"SMTP ready\r\n",
        b"HTTP/2 200 OK\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 2000\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        OK + b"X: " + b"x" * MAX_HEADERS,
    ],
)
def test_what_is_not_a_response_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidResponseError):
        parsed(raw)


@pytest.mark.parametrize(
    "raw",
    [
        OK + b"Content-Length: 1000000\r\n\r\n" + b"x" * EXCERPT_BYTES,
        OK + b"\r\n" + b"x" * EXCERPT_BYTES,
        CHUNKED + b"fffff\r\n" + b"x" * EXCERPT_BYTES,
        CHUNKED + b"1;" + b"y" * (5 * EXCERPT_BYTES),
        OK + b"Transfer-Encoding: gzip\r\n\r\n" + b"x" * EXCERPT_BYTES,
    ],
)
def test_a_long_response_is_cut_off_and_its_connection_not_used_again(raw: bytes) -> None:
    parser, enough = parsed(raw)
    assert (enough, parser.reusable) == ([True], False)
    assert len(parser.response().body) <= EXCERPT_BYTES


def test_a_length_beside_chunks_does_not_count() -> None:
    parser, enough = parsed(OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", b"\r\n0\r\n\r\n")
    assert enough[0] is False
    assert parser.response().body == b"a"


@pytest.mark.parametrize("raw", [OK + b"Content-Length: 1\r\n\r\naHTTP/1.1 200 OK", CHUNKED + b"0\r\n\r\nmore"])
def test_a_connection_with_more_than_was_asked_for_is_not_used_again(raw: bytes) -> None:
    parser, enough = parsed(raw)
    assert (enough, parser.reusable) == ([True], False)


def test_a_response_until_the_end_of_the_connection_is_what_has_arrived() -> None:
    parser, enough = parsed(OK + b"\r\n", b"some ", b"text")
    assert enough == [False] * 3
    assert (parser.response().body, parser.reusable) == (b"some text", False)
