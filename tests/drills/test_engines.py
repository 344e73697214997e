"""Drills on every broker: `make drills`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pillarbox.transports.kafka.drill import KafkaDrillQueue
from tests.faults.drilling import drilled
from tests.servers.kafka import KafkaServer
from tests.soak.engines import create_mock_topics

LONG = 60.0


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


def test_a_drill_on_kafka_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sqlite: str, kafka_server: KafkaServer
) -> None:
    """The mock cluster can neither create nor delete topics on request: the test does."""

    for name in ("create", "drop"):
        monkeypatch.setattr(KafkaDrillQueue, name, getattr(KafkaDrillQueue, name))  # restored after the test
    create_mock_topics(kafka_server)
    result = drilled(
        folder, monkeypatch, "kill", "drain", store=sqlite, transport=kafka_server.url(), seconds=LONG, faults=3
    )
    assert (result.conclusion, result.violations) == ("passed", [])


@pytest.mark.parametrize("broker", ["nats_server", "redis_server"])
def test_a_drill_on_streams_passes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mariadb_url: str, broker: str, request: pytest.FixtureRequest
) -> None:
    result = drilled(
        folder,
        monkeypatch,
        "kill",
        "kill-consumer",
        store=mariadb_url,
        transport=request.getfixturevalue(broker).url(),
        seconds=LONG,
        faults=3,
    )
    assert (result.conclusion, result.violations) == ("passed", [])
