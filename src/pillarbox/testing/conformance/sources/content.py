"""Content: messages are received in order and unchanged, byte for byte; a missing property is None."""

from __future__ import annotations

import pytest

from pillarbox.testing.conformance.sources.harness import SourceHarness
from pillarbox.testing.conformance.sources.receive import SOON, incoming, take, taken_ids

BODIES = {"empty": b"", "with NUL": b"a\x00b", "invalid UTF-8": b"\xff\xfe\x80", "200 kB": bytes(range(250)) * 800}
HEADERS = {
    "b": "2",
    "a": "",
    "ключ": "значение 🚀",
    "long": "x" * 4096,
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "shop=7,vendor@system=t61rcWkgMzE",
}


class SourceContentConformance:
    @pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
    async def test_bytes_are_unchanged(self, harness: SourceHarness, body: bytes) -> None:
        await harness.put(incoming("a", body=body))
        assert (await take(harness.source)).incoming.body == body

    async def test_all_properties_are_unchanged(self, harness: SourceHarness) -> None:
        sent = incoming("é 日本 🚀", event_type="order.placed", content_type="text/x", headers=HEADERS)
        await harness.put(sent)
        got = (await take(harness.source)).incoming
        assert (got.event_id, got.event_type, got.content_type) == ("é 日本 🚀", "order.placed", "text/x")
        assert got.correlation_id == "correlation"
        assert {name: value for name, value in got.headers.items() if name in HEADERS} == HEADERS
        assert (got.attempts, got.deferrals) == (0, 0)

    async def test_the_destination_is_named_also_after_a_retry(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        for delay in (SOON, 0.0, SOON):
            delivery = await take(harness.source)
            assert delivery.incoming.destination == harness.destination
            await delivery.retry(delay=delay, reason="not yet")
        assert (await take(harness.source)).incoming.destination == harness.destination

    async def test_a_missing_property_is_none(self, harness: SourceHarness) -> None:
        await harness.put(incoming(None, event_type=None, content_type=None, body=b"\xff"))
        got = (await take(harness.source)).incoming
        assert (got.event_id, got.event_type, got.content_type, got.body) == (None, None, None, b"\xff")

    async def test_messages_are_received_in_order(self, harness: SourceHarness) -> None:
        ids = [f"e{n}" for n in range(20)]
        await harness.put(*(incoming(one) for one in ids))
        assert await taken_ids(harness.source, 20) == ids
