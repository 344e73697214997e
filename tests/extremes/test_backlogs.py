"""Huge backlogs: a million pending or scheduled events, and 50,000 event types."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from contextlib import closing

import pytest

from tests.extremes.bulk import BULK, HOT, Bulk, Kind
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected
from tests.extremes.engines import Sending
from tests.extremes.receiving import from_queue
from tests.extremes.scene import Scene
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer

MILLION = 1_000_000
TYPES = 50_000
PENDING = 2_000
SLICE = 1_000
WAITING = 100_000
DRAINED = 20_000
LONG = 300.0
MEGABYTE = 1024**2
ROOM = 24 * MEGABYTE
"""What two relays with the same work may differ in memory; a million events in memory would need hundreds."""
DAY = 86_400.0
SOON = 2.0
READS = 128
"""Rows, pages or hundreds of steps that a fetch may read beyond twice as many as beside few events."""


class Backlog:
    """A scene, and many events in its tables."""

    def __init__(self, scene: Scene, bulk: Bulk) -> None:
        self.scene = scene
        self._bulk = bulk
        self._due = 0

    def load(self, prefix: str, count: int, *, due: float | None = None) -> None:
        self._bulk.load(self.scene.store, prefix, count, event_type=self.scene.event_type, due=due)
        self._due += 0 if due == DAY else count

    def block(self, key: str, count: int) -> None:
        self._bulk.block(self.scene.store, key, count)

    def reads(self, *kinds: Kind) -> list[int]:
        """Return what fetches read."""
        return asyncio.run(self._bulk.measure(self.scene.store, kinds))

    def early(self) -> int:
        return self.scene.number(self._bulk.early.format(SOON))

    def deliver(self, *, but: int) -> int:
        """Let a relay deliver all but the later events; return its peak memory."""
        relay = self.scene.start()
        self.scene.wait_until(lambda: self.scene.delivered() >= self._due, what="everything that is due is delivered")
        peak = relay.peak_memory()
        self.scene.stop()
        assert self.scene.pending() == but
        return peak


@pytest.fixture(params=BULK)
def backlog(request: pytest.FixtureRequest, make_scene: MakeScene, rabbitmq_server: RabbitMQServer) -> Backlog:
    store = str(request.getfixturevalue(f"{request.param}_url"))
    return Backlog(make_scene(store=store, transport=rabbitmq_server.url()), BULK[request.param])


def assert_bounded(few: list[int], many: list[int]) -> None:
    print(f"read beside few events {few}, beside a million {many}")
    assert all(after <= 2 * before + READS for before, after in zip(few, many, strict=True)), (few, many)


def test_a_million_scheduled_events_delay_no_other_event(backlog: Backlog, rabbitmq_server: RabbitMQServer) -> None:
    backlog.load("few-", PENDING)
    backlog.load("few-due-", SLICE, due=-SLICE / 1000)
    few = backlog.reads("ready", "due")
    peak_of_few = backlog.deliver(but=0)
    backlog.load("later-", MILLION, due=DAY)
    backlog.load("ready-", PENDING)
    backlog.load("due-", SLICE, due=-SLICE / 1000)
    many = backlog.reads("ready", "due")
    backlog.load("soon-", SLICE, due=SOON)
    peak_of_many = backlog.deliver(but=MILLION)
    assert backlog.early() == 0
    assert_bounded(few, many)
    assert peak_of_many <= peak_of_few + ROOM
    received = from_queue(rabbitmq_server.url(), backlog.scene.event_type)
    numbers = {"few-": PENDING, "few-due-": SLICE, "ready-": PENDING, "due-": SLICE, "soon-": SLICE}
    assert len(received) == sum(numbers.values())
    assert set(received) == {f"{prefix}{n}" for prefix, count in numbers.items() for n in range(1, count + 1)}


def test_a_million_pending_events_cost_a_fetch_no_more(backlog: Backlog, rabbitmq_server: RabbitMQServer) -> None:
    """A relay delivers a part of them, in the order of each key; its memory does not grow with the rest."""
    scene = backlog.scene
    backlog.load("few-", DRAINED)
    few = backlog.reads("ready")
    peak_of_few = backlog.deliver(but=0)
    backlog.load("many-", MILLION)
    many = backlog.reads("ready")
    relay = scene.start()
    scene.wait_delivered(DRAINED)
    peak_of_many = relay.peak_memory()
    scene.stop()
    assert scene.pending() > MILLION / 2
    assert_bounded(few, many)
    assert peak_of_many <= peak_of_few + ROOM
    received = from_queue(rabbitmq_server.url(), scene.event_type)
    assert len(received) == len(set(received)) == DRAINED + MILLION - scene.pending()
    of_keys: dict[tuple[str, int], list[int]] = {}
    for event_id in received:
        prefix, _, number = event_id.rpartition("-")
        of_keys.setdefault((prefix, int(number) % 1000), []).append(int(number))
    assert all(numbers == sorted(numbers) for numbers in of_keys.values())
    assert scene.attempts() == 0


@pytest.mark.parametrize("backlog", ["mariadb", "sqlite"], indirect=True)
def test_100000_events_behind_a_blocked_key_cost_a_fetch_no_more(backlog: Backlog) -> None:
    """Fetches of other events, and of the next ones of a queue that is as long."""
    backlog.load("ready-", PENDING)
    backlog.block(HOT, SLICE)
    backlog.block("blocked", SLICE)
    backlog.scene.query(f"UPDATE outbox_message SET held = 'blocked' WHERE event_id = 'blocked-{SLICE}-1'")
    few = backlog.reads("ready", "next")
    backlog.block(HOT, WAITING)
    backlog.block("blocked", WAITING)
    assert_bounded(few, backlog.reads("ready", "next"))


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
