"""Huge backlogs: a million scheduled events, and 50,000 event types."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from contextlib import closing

import psycopg

from pillarbox.statements import Names
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected
from tests.extremes.engines import Sending
from tests.extremes.receiving import from_queue
from tests.extremes.scene import Scene
from tests.plans.explain import Cost, Explainer
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer

MILLION = 1_000_000
TYPES = 50_000
BATCH = 500
PENDING = 2_000
SLICE = 1_000
LONG = 300.0
MEGABYTE = 1024**2
ROOM = 24 * MEGABYTE
"""What two relays with the same work may differ in memory; a million events in memory would need hundreds."""
LANES = list(range(64))
BYTES = [8 * MEGABYTE, 1 << 62]
STATEMENTS = PostgresStatements(Names(schema="public"))
INSERT = """
INSERT INTO outbox_message (event_id, event_type, payload, ordering_key, available_at)
SELECT '{prefix}' || g, '{event_type}', '{{}}', 'key ' || g % 1000, {due} FROM generate_series(1, {count}) g
"""
LATER = "now() + interval '1 day' + g * interval '1 ms'"
SOON = "now() + interval '2 s' + g * interval '1 ms'"


HALF_A_DAY = "now() + interval '12 h'"
EARLY = """
SELECT count(*) FROM outbox_history WHERE event_id LIKE 'soon-%' AND published_at < recorded_at + interval '2 s'
"""


def load(scene: Scene, prefix: str, count: int, due: str) -> None:
    """Insert events in bulk, as a producer with plain SQL; only their scheduled time may differ."""
    with psycopg.connect(scene.store, autocommit=True) as connection:
        connection.execute(INSERT.format(prefix=prefix, event_type=scene.event_type, due=due, count=count).encode())
        connection.execute(b"VACUUM ANALYZE outbox_message")


def costs(scene: Scene) -> tuple[Cost, Cost]:
    """What a fetch of ready events and a fetch of due ones touch."""

    async def both() -> tuple[Cost, Cost]:
        explain = Explainer(scene.store)
        ready = await explain.cost(STATEMENTS.get("fetch_ready"), LANES, BATCH, BATCH, *BYTES, [], [])
        return ready, await explain.cost(STATEMENTS.get("fetch_due"), LANES, BATCH, BATCH, *BYTES, [], [])

    return asyncio.run(both())


def deliver(scene: Scene, *, but: int) -> int:
    """Let a relay deliver all but the later events; return its peak memory."""
    relay = scene.start()
    pending = f"SELECT count(*) FROM outbox_message WHERE available_at IS NULL OR available_at < {HALF_A_DAY}"
    scene.wait_until(lambda: scene.number(pending) == 0, what="everything that is due is delivered")
    peak = relay.peak_memory()
    scene.stop()
    assert scene.pending() == but
    return peak


def test_a_million_scheduled_events_delay_no_other_event(
    make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    scene = make_scene(store=postgres_url, transport=rabbitmq_server.url())
    load(scene, "few-", PENDING, "NULL")
    load(scene, "few-due-", SLICE, "now()")
    few = costs(scene)
    peak_of_few = deliver(scene, but=0)
    load(scene, "later-", MILLION, LATER)
    load(scene, "ready-", PENDING, "NULL")
    load(scene, "due-", SLICE, "now()")
    many = costs(scene)
    load(scene, "soon-", SLICE, SOON)
    peak_of_many = deliver(scene, but=MILLION)
    assert scene.number(EARLY) == 0
    for before, after in zip(few, many, strict=True):
        assert (after.returned, before.returned) == (BATCH, BATCH)
        assert after.rows <= before.rows + 2 * len(LANES), after
        assert after.pages <= 2 * before.pages, after
    assert peak_of_many <= peak_of_few + ROOM
    received = from_queue(rabbitmq_server.url(), scene.event_type)
    numbers = {"few-": PENDING, "few-due-": SLICE, "ready-": PENDING, "due-": SLICE, "soon-": SLICE}
    assert len(received) == sum(numbers.values())
    assert set(received) == {f"{prefix}{n}" for prefix, count in numbers.items() for n in range(1, count + 1)}


LABEL = re.compile(r'[{,]event_type="([^"]*)"')
OWN_SERIES = 50
"""Event types with series of their own, as `docs/reference/metrics.md` says; all others are one."""


def insert_types(scene: Scene, types: int, count: int) -> list[str]:
    """Insert events of so many types, as a producer with plain SQL; return their ids."""
    ids = [f"{types}-types-{number}" for number in range(count)]
    with connected(scene.store) as connection, closing(connection.cursor()) as cursor:
        for first in range(0, count, SLICE):
            rows = enumerate(ids[first : first + SLICE], first)
            values = ", ".join(f"('{event_id}', 'type-{number % types}', '{{}}')" for number, event_id in rows)
            cursor.execute(f"INSERT INTO outbox_message (event_id, event_type, payload) VALUES {values}")
        connection.commit()
    return ids


def deliver_types(scene: Scene) -> tuple[int, str]:
    """Let a relay deliver everything; return its peak memory and its metrics."""
    port = free_port()
    relay = scene.start({"RELAY__LISTEN": f"127.0.0.1:{port}", "RELAY__BATCH_SIZE": "500"})
    scene.wait_drained(bound=LONG)
    peak = relay.peak_memory()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        metrics = answer.read().decode()
    scene.stop()
    return peak, metrics


def test_50000_event_types_to_one_place(sending: Sending, one_place: str) -> None:
    scene = sending.scene
    scene.settings["CONFIG"] = one_place
    ids = insert_types(scene, 1, SLICE * 10)
    peak_of_one, _ = deliver_types(scene)
    ids += insert_types(scene, TYPES, TYPES)
    peak_of_many, metrics = deliver_types(scene)
    print(f"peak memory: {peak_of_one / MEGABYTE:.1f} MiB with one type, {peak_of_many / MEGABYTE:.1f} with {TYPES:,}")
    assert peak_of_many <= peak_of_one + ROOM
    assert len(set(LABEL.findall(metrics))) == OWN_SERIES + 1
    assert sorted(sending.received()) == sorted(ids)
