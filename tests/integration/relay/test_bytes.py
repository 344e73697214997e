"""Large events: bytes in flight and memory of a relay do not grow with their number."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Sequence
from contextlib import aclosing, closing
from pathlib import Path

import asyncpg
import pytest

from pillarbox import Relay, RelayConfig
from pillarbox.admin.admin import AdminStore
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.memory import MemoryTransport

MIB = 1024 * 1024
EVENTS = 40
BOUND = 8 * MIB
LARGE = 10 * MIB
IDS = ["correlation_id", "causation_id", "trace_id"]
"""Texts that a plain INSERT may give any length."""


class Weighing(MemoryTransport):
    """Measures the bytes in flight, and keeps nothing."""

    relay: Relay

    def __init__(self) -> None:
        super().__init__()
        self.heaviest = 0
        self.beside_large: list[int] = []
        self.arrived: list[tuple[str | None, int]] = []

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        in_flight = self.relay._context.in_flight
        if any(one.message.size > BOUND for one in batch):
            self.beside_large.append(len(in_flight) - 1)
        else:
            self.heaviest = max(self.heaviest, in_flight.bytes)
        self.arrived += [(one.message.key, one.message.id) for one in batch]
        return [None] * len(batch)


async def carried(store: AdminStore) -> tuple[Weighing, int]:
    """Deliver everything; returns the transport and the peak memory."""
    transport = Weighing()
    config = RelayConfig(max_in_flight_bytes=BOUND, poll_interval="50ms")
    transport.relay = Relay(store=store, transports={"memory": transport}, config=config)
    tracemalloc.start()
    try:
        assert await transport.relay.run_until_empty() == 0
        return transport, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_bounded(transport: Weighing, peak: int, *, events: int, most: int) -> None:
    assert len(transport.arrived) == events
    assert 0 < transport.heaviest <= BOUND
    assert peak < most
    for key in {key for key, _ in transport.arrived}:
        numbers = [number for k, number in transport.arrived if k == key]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("heavy", ["payload", "headers", *IDS])
async def test_memory_is_bounded_for_large_events_on_postgresql(postgres_url: str, heavy: str) -> None:
    text = "repeat('x', (CASE WHEN {large} THEN 10 ELSE 1 END * 1024 * 1024 - 20)::int)"
    value = {
        "payload": f"convert_to({text.format(large='false')}, 'UTF8')",
        "headers": f"jsonb_build_object('h', {text.format(large='g = 20')})",
    }.get(heavy, text.format(large="g = 20"))
    content = {"payload": "''"} | {heavy: value}
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        f"INSERT INTO outbox_message (event_type, ordering_key, {', '.join(content)})"
        f" SELECT 't', 'key ' || g % 7, {', '.join(content.values())} FROM generate_series(1, {EVENTS}) g"
    )
    await connection.close()
    async with aclosing(PostgresStore(postgres_url)) as store:
        transport, peak = await carried(store)
    assert_bounded(transport, peak, events=EVENTS, most=5 * (BOUND if heavy == "payload" else LARGE))
    assert transport.beside_large == ([] if heavy == "payload" else [0])


@pytest.mark.parametrize("heavy", ["payload", "headers", *IDS])
async def test_memory_is_bounded_for_large_events_on_sqlite(tmp_path: Path, heavy: str) -> None:
    async with aclosing(SqliteStore(tmp_path / "large.db")) as store:
        await store.schema.apply()
        value = {"payload": b"x" * MIB, "headers": '{"h": "' + "x" * MIB + '"}'}.get(heavy, "x" * MIB)
        content = {"payload": b""} | {heavy: value}
        with closing(sqlite3.connect(tmp_path / "large.db")) as connection, connection:
            connection.executemany(
                f"INSERT INTO outbox_message (event_type, ordering_key, {', '.join(content)})"
                f" VALUES ('t', ?{', ?' * len(content)})",
                ((f"key {n % 7}", *content.values()) for n in range(EVENTS)),
            )
        transport, peak = await carried(store)
    assert_bounded(transport, peak, events=EVENTS, most=3 * BOUND)
