"""Drills on every broker, and on SQLite: `make drills`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pillarbox.ops.drill.schedule import FaultKind
from pillarbox.transports.kafka.drill import KafkaDrillQueue
from tests.faults.drilling import SEED, drilled
from tests.servers.availability import available
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.redis import RedisServer
from tests.soak.engines import create_mock_topics
from tests.soak.outages import HookSocket, ServerOutages, Way

LONG = 180.0
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


def test_a_drill_on_kafka_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, kafka_server: KafkaServer
) -> None:
    """The mock cluster can neither create nor delete topics on request: the test does."""

    for name in ("create", "drop"):
        monkeypatch.setattr(KafkaDrillQueue, name, getattr(KafkaDrillQueue, name))  # restored after the test
    create_mock_topics(kafka_server)
    result = drilled(
        folder,
        monkeypatch,
        "kill",
        "drain",
        "kill-consumer",
        store=sqlite,
        transport=kafka_server.url(),
        seconds=LONG,
        faults=7,
    )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in ("kill", "drain", "kill-consumer") if not result.effective[kind]] == []


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
