"""Everything at once: every kind of fault that two engines support, at random, in one drill. `make drills`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pillarbox.ops.drill.schedule import FaultKind
from pillarbox.ops.drill.target import DrillJob, SettingsSource, new_name
from pillarbox.transports.kafka.drill import KafkaDrillQueue
from tests.drills.webhook_receiver import Receiver
from tests.faults.drilling import SEED, drilled
from tests.servers.kafka import KafkaServer
from tests.soak.engines import BROKERS, STORES, create_mock_topics
from tests.soak.outages import HookSocket, Outages, ServerOutages

LONG = 300.0
FAULTS = 14
"""A round has each kind, and some more kills and drains."""


class MockOutages:
    """Cuts off the mock cluster of Kafka: it drops connections and accepts none."""

    def __init__(self, server: KafkaServer) -> None:
        self.cut = server.down
        self.restore = server.up


@pytest.fixture
def running() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("store", "broker"),
    [
        ("postgresql", "rabbitmq"),
        ("mariadb", "nats"),
        ("postgresql", "redis"),
        ("sqlite", "kafka"),
        ("sqlite", "webhook"),
        ("sqlite", "handlers"),
    ],
)
def test_every_fault_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: ExitStack, store: str, broker: str
) -> None:
    kinds: list[FaultKind] = ["kill", "freeze", "stale-settlement", "drain"]
    database = STORES[store](running, tmp_path)
    monkeypatch.setenv("PILLARBOX_STORE", database.url)
    outages: dict[str, Outages] = {}
    rng = random.Random(SEED)
    name, transport, relay = new_name(), "", ""
    if database.server is not None:
        outages["database"] = ServerOutages(database.server, rng, *database.ways)
        kinds.append("cut-database")
    if store == "postgresql":
        kinds.append("blocked-settlement")
    match broker:
        case "webhook":
            job = DrillJob(source=SettingsSource(), transport="", name=name, folder=folder, role="receiver")
            receiver = running.enter_context(closing(Receiver(job)))
            monkeypatch.setenv("DRILL_RECEIVER", receiver.url)
            outages["broker"] = ServerOutages(receiver, rng, "freeze", "kill")
            relay = "tests.drills.webhook_relay"
        case "kafka":
            for method in ("create", "drop"):
                monkeypatch.setattr(KafkaDrillQueue, method, getattr(KafkaDrillQueue, method))  # restored afterwards
            server = running.enter_context(KafkaServer())
            create_mock_topics(server)
            outages["broker"] = MockOutages(server)
            transport = server.url()
        case _:
            queue = BROKERS[broker](running, tmp_path)
            transport = queue.url
            if queue.server is not None:
                outages["broker"] = ServerOutages(queue.server, rng, *queue.ways)
    if transport:
        kinds.append("kill-consumer")
    if "broker" in outages:
        kinds.append("cut-broker")
    if broker == "rabbitmq":
        kinds.append("unroutable")
    hooks = running.enter_context(closing(HookSocket(tmp_path, outages)))
    result = drilled(
        folder,
        monkeypatch,
        *kinds,
        store=database.url,
        transport=transport,
        seconds=LONG,
        faults=FAULTS,
        name=name,
        relay=relay,
        cut_database=hooks.command("database", "cut"),
        restore_database=hooks.command("database", "restore"),
        cut_broker=hooks.command("broker", "cut"),
        restore_broker=hooks.command("broker", "restore"),
    )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert [kind for kind in kinds if not result.effective[kind]] == []
