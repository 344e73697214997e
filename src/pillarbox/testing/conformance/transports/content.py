"""Content: bodies and headers arrive unchanged, byte for byte; the message id is the event id on every attempt."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import arrived, outgoing, send

BODIES = {
    "empty": b"",
    "with NUL": b"a\x00b",
    "invalid UTF-8": b"\xff\xfe\x80\xc3(",
    "every byte": bytes(range(256)) * 4,
    "line ends": b"\r\n\n\r",
    "900 kB": bytes(range(250)) * 3600,
}
HEADERS = {"b": "2", "a": "", "ключ": "значение 🚀", "quote": "\"'\\ {x} %s :y $1 ?", "n": "0123", "long": "x" * 8192}


class ContentConformance:
    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
    async def test_bytes_are_unchanged(self, harness: TransportHarness, body: bytes) -> None:
        place = harness.address()
        assert await send(harness, outgoing("a", place, body=body)) == [None]
        [found] = await arrived(harness, place, 1)
        assert found.body == body

    async def test_bodies_of_one_batch_are_not_mixed_up(self, harness: TransportHarness) -> None:
        place = harness.address()
        bodies = {f"e{n}": bytes([n]) * (n * 1000) for n in range(min(harness.transport.pace.batch_size, 20))}
        await send(harness, *(outgoing(one, place, body=body) for one, body in bodies.items()))
        found = await arrived(harness, place, len(bodies))
        assert {one.event_id: one.body for one in found} == bodies

    async def test_headers_are_unchanged(self, harness: TransportHarness) -> None:
        place = harness.address()
        assert await send(harness, outgoing("a", place, headers=HEADERS)) == [None]
        [found] = await arrived(harness, place, 1)
        assert {name: value for name, value in found.headers.items() if name in HEADERS} == HEADERS

    @pytest.mark.parametrize("content_type", ["application/json", "application/x-thing; charset=utf-8"])
    async def test_the_content_type_is_unchanged(self, harness: TransportHarness, content_type: str) -> None:
        place = harness.address()
        assert await send(harness, outgoing("a", place, body=b"{}", content_type=content_type)) == [None]
        [found] = await arrived(harness, place, 1)
        assert (found.content_type, found.body) == (content_type, b"{}")

    @pytest.mark.parametrize("event_id", ["evt-001", "é 日本 🚀", "x" * 200, "a'; -- {event_type} %s"])
    async def test_the_message_id_is_the_event_id_on_every_attempt(
        self, harness: TransportHarness, event_id: str
    ) -> None:
        place = harness.address()
        for attempt in (1, 2, 3):
            assert await send(harness, outgoing(event_id, place, body=b"x", attempt=attempt)) == [None]
        assert [one.event_id for one in await arrived(harness, place, 3)] == [event_id] * 3
