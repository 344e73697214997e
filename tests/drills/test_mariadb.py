"""A MariaDB server is killed under load, and started again: `make drills`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.drilling import SEED, drilled
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.soak.outages import HookSocket, ServerOutages

LONG = 180.0


@pytest.fixture
def mariadb() -> Iterator[MariaDBServer]:
    """A server for one test, to be killed."""
    with available(MariaDBServer) as server:
        yield server


def test_a_killed_mariadb_loses_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mariadb: MariaDBServer,
    rabbitmq_server: RabbitMQServer,
) -> None:
    mariadb.create_database("shop")
    outages = ServerOutages(mariadb, random.Random(SEED), "kill")
    with closing(HookSocket(tmp_path, {"database": outages})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-database",
            store=mariadb.url("shop"),
            transport=rabbitmq_server.url(),
            seconds=LONG,
            faults=15,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-database"] > 1
    assert result.effective["kill"] > 0
