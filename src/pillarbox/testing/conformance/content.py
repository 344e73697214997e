"""Content: payloads, headers and fields are unchanged, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pillarbox.core.event import Event
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner

PAYLOADS = {
    "empty": b"",
    "with NUL": b"a\x00b",
    "invalid UTF-8": b"\xff\xfe\x80\xc3(",
    "every byte": bytes(range(256)) * 4,
    "JSON with a NUL escape": b'{"b": 1, "a": "\\u0000", "a": 2}',
    "half a megabyte": b"0123456789abcdef" * 32768,
}


class StoreContentConformance:
    @pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
    async def test_payload_bytes_are_unchanged(self, harness: StoreHarness, payload: bytes) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", payload=payload))
        [message] = await owner.ready()
        assert bytes(message.payload) == payload

    async def test_headers_are_unchanged(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        headers = {"b": "2", "a": "", "ключ": "значение 🚀", "quote": "\"'\\ {x} %s :y $1 ?", "n": "0123"}
        await harness.commit(event("a", headers=headers))
        [message] = await owner.ready()
        assert message.headers == headers

    async def test_every_field_is_unchanged(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        occurred = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        await harness.commit(
            Event(
                "Заказ.создан",
                b"x",
                event_id="evt-001 é 日本",
                aggregate_type="ORDER",
                aggregate_id="42'; --",
                content_type="application/x-thing",
                schema_version=7,
                correlation_id="corr",
                causation_id="cause",
                trace_id="any text will do",
                occurred_at=occurred,
                destination="somewhere",
            )
        )
        [m] = await owner.ready()
        assert (m.event_type, m.event_id, m.destination) == ("Заказ.создан", "evt-001 é 日本", "somewhere")
        assert (m.aggregate_type, m.aggregate_id, m.key) == ("ORDER", "42'; --", "ORDER:42'; --")
        assert (m.content_type, m.schema_version) == ("application/x-thing", 7)
        assert (m.correlation_id, m.causation_id, m.trace_id) == ("corr", "cause", "any text will do")
        assert m.occurred_at == occurred
        assert (m.available_at, m.held, m.attempts, m.deferrals, m.must_wait) == (None, None, 0, 0, False)

    async def test_a_minimal_event_gets_its_defaults_from_the_store(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        before = datetime.now(UTC) - timedelta(minutes=1)
        await harness.commit(Event("thing.happened", {"b": 1, "a": "é"}))
        [m] = await owner.ready()
        assert (m.payload, m.content_type) == ('{"b":1,"a":"é"}'.encode(), "application/json")
        assert (m.destination, m.key, m.headers, m.schema_version) == ("", None, {}, 1)
        assert before < m.recorded_at < before + timedelta(minutes=2)
        assert before < m.occurred_at < before + timedelta(minutes=2)

    @pytest.mark.parametrize(
        ("fields", "key"),
        [
            ({"key": "given", "aggregate_type": "T", "aggregate_id": "1"}, "given"),
            ({"aggregate_type": "T", "aggregate_id": "1"}, "T:1"),
            ({"aggregate_id": "1"}, "1"),
            ({"aggregate_type": "T"}, None),
            ({}, None),
        ],
    )
    async def test_the_key_defaults_to_the_aggregate(
        self, harness: StoreHarness, fields: dict[str, str], key: str | None
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", **fields))
        [message] = await owner.ready()
        assert message.key == key

    async def test_all_events_of_a_key_have_one_lane(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(
            event("a", "T:1"),
            event("b", aggregate_type="T", aggregate_id="1"),
            event("c", "T:1", destination="x"),
        )
        messages = await owner.ready()
        assert len(messages) == 3
        assert len({m.lane for m in messages}) == 1

    async def test_events_spread_over_the_lanes(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"e{n}") for n in range(400)))
        lanes = {m.lane for m in await owner.ready()}
        assert lanes <= set(range(harness.store.lanes.count))
        assert len(lanes) >= min(harness.store.lanes.count, 40)
