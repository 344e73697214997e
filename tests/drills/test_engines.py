"""Drills on every broker, and on SQLite: `make drills`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pillarbox.ops.drill.schedule import FaultKind
from pillarbox.ops.drill.target import DrillTarget, SettingsSource, new_name
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.kafka.drill import KafkaDrillQueue
from tests.faults.drilling import SEED, drilled
from tests.servers.availability import available
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.redis import RedisServer
from tests.soak.engines import create_mock_topics
from tests.soak.outages import HookSocket, ServerOutages, Way

LONG = 180.0
MANY = 2_500
"""More events than are read at once."""
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


def test_a_drill_on_sqlite_passes(folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str) -> None:
    """Its relays share one lane: the others stand by, and take over."""
    kinds: tuple[FaultKind, ...] = ("kill", "freeze", "stale-settlement", "drain")
    result = drilled(folder, monkeypatch, *kinds, store=sqlite, seconds=LONG, faults=8)
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in kinds if not result.effective[kind]] == []


class KafkaOutages:
    """Has every broker of the mock cluster drop its connections and accept none; their logs stay."""

    def __init__(self, server: KafkaServer) -> None:
        self.cut = server.down
        self.restore = server.up


def test_a_drill_on_kafka_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sqlite: str, kafka_server: KafkaServer
) -> None:
    """The mock cluster can neither create nor delete topics on request: the test does."""

    kinds: tuple[FaultKind, ...] = ("kill", "drain", "kill-consumer", "cut-broker")
    for name in ("create", "drop"):
        monkeypatch.setattr(KafkaDrillQueue, name, getattr(KafkaDrillQueue, name))  # restored after the test
    create_mock_topics(kafka_server)
    with closing(HookSocket(tmp_path, {"broker": KafkaOutages(kafka_server)})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            *kinds,
            store=sqlite,
            transport=kafka_server.url(),
            seconds=LONG,
            faults=9,
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in kinds if not result.effective[kind]] == []
    assert result.order_is_known


@pytest.fixture(params=["nats", "redis"], ids=["nats_server", "redis_server"])
def broker(request: pytest.FixtureRequest) -> Iterator[NatsServer | RedisServer]:
    """A server for one test, to be stopped and frozen. Redis writes its log at every message."""
    server = NatsServer() if request.param == "nats" else RedisServer(settings=DURABLE)
    with available(lambda: server):
        yield server


@pytest.fixture
def hooks(request: pytest.FixtureRequest, tmp_path: Path, broker: NatsServer | RedisServer) -> Iterator[HookSocket]:
    ways: tuple[Way, ...] = getattr(request, "param", ("stop", "freeze"))
    outages = ServerOutages(broker, random.Random(SEED), *ways)
    with closing(HookSocket(tmp_path, {"broker": outages})) as running:
        yield running


def test_a_drill_on_streams_passes(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mariadb_url: str,
    broker: NatsServer | RedisServer,
    hooks: HookSocket,
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "kill",
        "kill-consumer",
        "cut-broker",
        store=mariadb_url,
        transport=broker.url(),
        seconds=LONG,
        faults=12,
        cut_broker=hooks.command("broker", "cut"),
        restore_broker=hooks.command("broker", "restore"),
    )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in ("kill", "kill-consumer", "cut-broker") if not result.effective[kind]] == []
    assert result.order_is_known


async def test_the_order_of_a_drill_on_streams_is_that_in_which_the_broker_stored_its_events(
    monkeypatch: pytest.MonkeyPatch, sqlite: str, broker: NatsServer | RedisServer
) -> None:
    monkeypatch.setenv("PILLARBOX_STORE", sqlite)
    monkeypatch.setenv("PILLARBOX_TRANSPORT", broker.url())
    queue = DrillTarget.of(SettingsSource().load(), name=new_name()).open_queue()
    assert queue is not None
    async with aclosing(queue):
        await queue.create()
        sent = [f"{n}" for n in range(MANY, 0, -1)]
        assert await queue.transport.send([outgoing(one, queue.address) for one in sent]) == [None] * MANY
        assert await queue.stored() == sent
        await queue.drop()


@pytest.mark.parametrize("hooks", [("stop",)], indirect=True, ids=["stop"])
def test_without_waiting_for_the_confirm_a_drill_on_streams_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, broker: NatsServer | RedisServer, hooks: HookSocket
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "cut-broker",
        store=sqlite,
        transport=broker.url(),
        seconds=LONG,
        faults=1,
        without="confirm",
        cut_broker=hooks.command("broker", "cut"),
        restore_broker=hooks.command("broker", "restore"),
    )
    assert result.conclusion == "failed"
    assert result.findings.lost
