"""Content: bodies and headers arrive unchanged, byte for byte; the message id is the event id on every attempt."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import arrived, arrived_ids, outgoing, send

BODIES = {
    "empty": b"",
    "with NUL": b"a\x00b",
    "invalid UTF-8": b"\xff\xfe\x80\xc3(",
    "every byte": bytes(range(256)) * 4,
    "line ends": b"\r\n\n\r",
    "900 kB": bytes(range(250)) * 3600,
}
HEADERS = {
    "b": "2",
    "a": "",
    "ключ": "значение 🚀",
    "quote": "\"'\\ {x} %s :y $1 ?",
    "n": "0123",
    "long": "x" * 8192,
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "shop=7,vendor@system=t61rcWkgMzE",
}


class TransportContentConformance:
    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
    async def test_bytes_are_unchanged(self, harness: TransportHarness, body: bytes) -> None:
        address = harness.address()
        assert await send(harness, outgoing("a", address, body=body)) == [None]
        [found] = await arrived(harness, address, 1)
        assert found.body == body

    async def test_bodies_of_one_batch_are_not_mixed_up(self, harness: TransportHarness) -> None:
        address = harness.address()
        bodies = {f"e{n}": bytes([n]) * (n * 1000) for n in range(min(harness.transport.pace.batch_size, 20))}
        await send(harness, *(outgoing(one, address, body=body) for one, body in bodies.items()))
        found = await arrived(harness, address, len(bodies))
        assert {one.event_id: one.body for one in found} == bodies

    async def test_headers_are_unchanged(self, harness: TransportHarness) -> None:
        address = harness.address()
        assert await send(harness, outgoing("a", address, headers=HEADERS)) == [None]
        [found] = await arrived(harness, address, 1)
        assert {name: value for name, value in found.headers.items() if name in HEADERS} == HEADERS

    @pytest.mark.parametrize("content_type", ["application/json", "application/x-thing; charset=utf-8"])
    async def test_the_content_type_is_unchanged(self, harness: TransportHarness, content_type: str) -> None:
        address = harness.address()
        assert await send(harness, outgoing("a", address, body=b"{}", content_type=content_type)) == [None]
        [found] = await arrived(harness, address, 1)
        assert (found.content_type, found.body) == (content_type, b"{}")

    @pytest.mark.parametrize("event_id", ["evt-001", "é 日本 🚀", "x" * 200, "a'; -- {event_type} %s"])
    async def test_the_message_id_is_the_event_id_on_every_attempt(
        self, harness: TransportHarness, event_id: str
    ) -> None:
        address = harness.address()
        for attempt in (1, 2, 3):
            assert await send(harness, outgoing(event_id, address, body=b"x", attempt=attempt)) == [None]
        assert await send(harness, outgoing("last", address)) == [None]
        copies = 1 if harness.capabilities.deduplicates else 3
        assert await arrived_ids(harness, address, copies + 1) == [*[event_id] * copies, "last"]
