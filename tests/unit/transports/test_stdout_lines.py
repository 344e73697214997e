"""The lines of the stdout transport: JSON without control characters, on streams of any encoding."""

import asyncio
import io
import json
import os
from typing import Any

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.stdout import StdoutTransport

JSON = "application/json"


async def shown(body: bytes, content_type: str = JSON, **more: Any) -> str:
    stream = io.StringIO()
    stdout = StdoutTransport(stream)
    assert await stdout.send([outgoing("e", stdout.to(), body=body, content_type=content_type, **more)]) == [None]
    await stdout.aclose()
    return stream.getvalue()


async def test_a_line_has_the_event_and_its_payload() -> None:
    line = json.loads(await shown(b'{"id":42}', headers={"a": "b"}, attempt=2))
    assert line == {
        "event_id": "e",
        "event_type": "thing.happened",
        "destination": "somewhere",
        "aggregate_type": "THING",
        "aggregate_id": "1",
        "key": "THING:1",
        "occurred_at": "2026-01-02T03:04:05.678901Z",
        "attempt": 2,
        "headers": {"a": "b"},
        "content_type": JSON,
        "payload": {"id": 42},
    }


async def test_json_is_printed_unchanged_on_one_line() -> None:
    line = await shown(b'{"b": 1.0,\n"a":\t1e400, "a":2}')
    assert line.endswith('"payload": {"b": 1.0, "a": 1e400, "a":2}}\n')


@pytest.mark.parametrize(
    ("body", "content_type", "field", "value"),
    [
        (b"plain", "text/plain", "text", "plain"),
        (b"{", JSON, "text", "{"),
        (b"NaN", JSON, "text", "NaN"),
        (b"[" * 100_000, JSON, "text", "[" * 100_000),
        (b"\xff\x00", "application/octet-stream", "base64", "/wA="),
    ],
)
async def test_other_payloads_are_printed_as_text_or_base64(
    body: bytes, content_type: str, field: str, value: str
) -> None:
    assert json.loads(await shown(body, content_type))[field] == value


@pytest.mark.parametrize("nasty", ["\x1b[2J", "\x9b2J", "a\u2028b", "\u202eabc", "\r\n", "\ud800"])
async def test_control_characters_are_escaped(nasty: str) -> None:
    line = await shown(
        json.dumps({"a": nasty.replace("\ud800", "")}, ensure_ascii=False).encode(), headers={"h": nasty}
    )
    assert line[:-1].isprintable()
    assert json.loads(line)["headers"] == {"h": nasty}


async def test_unicode_text_stays_readable_if_the_stream_supports_it() -> None:
    assert "Привет 🚀" in await shown('{"a":"Привет 🚀"}'.encode())


async def test_a_stream_without_unicode_gets_escapes() -> None:
    raw = io.BytesIO()
    stdout = StdoutTransport(io.TextIOWrapper(raw, encoding="latin-1"))
    assert await stdout.send([outgoing("é", stdout.to(), body='{"a":"🚀"}'.encode(), content_type=JSON)]) == [None]
    line = json.loads(raw.getvalue().decode("ascii"))
    assert (line["event_id"], line["payload"]) == ("é", {"a": "🚀"})


async def test_lines_go_to_standard_output_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    stdout = StdoutTransport()
    assert await stdout.send([outgoing("a", stdout.to("here")), outgoing("b", stdout.to("here"))]) == [None, None]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["event_id"], line["destination"]) for line in lines] == [("a", "here"), ("b", "here")]
    await stdout.aclose()


async def test_a_closed_pipe_is_unavailable() -> None:
    reader, writer = os.pipe()
    stream = os.fdopen(writer, "w", encoding="utf-8")
    stdout = StdoutTransport(stream)
    os.close(reader)
    results = await stdout.send([outgoing(one, stdout.to()) for one in "ab"])
    assert [type(result) for result in results] == [UnavailableError, UnavailableError]
    assert "BrokenPipeError" in str(results[0])
    await stdout.aclose()
    with pytest.raises(BrokenPipeError):
        stream.close()


async def test_a_closed_stream_is_unavailable() -> None:
    stream = io.StringIO()
    stream.close()
    stdout = StdoutTransport(stream)
    with pytest.raises(UnavailableError):
        await stdout.ping()


async def test_a_full_pipe_blocks_neither_the_loop_nor_the_close() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="utf-8") as stream, os.fdopen(reader, "rb") as end:
        stdout = StdoutTransport(stream)
        sending = asyncio.create_task(stdout.send([outgoing("a", stdout.to(), body=b"x" * 1_000_000)]))
        done, _ = await asyncio.wait([sending], timeout=0.02)
        assert not done
        await stdout.aclose()
        [result] = await sending
        assert isinstance(result, UnavailableError)
        while b"\n" not in end.read1():
            continue
