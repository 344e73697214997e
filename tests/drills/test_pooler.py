"""Producers and consumers behind PgBouncer in transaction mode, relays connected directly: `make drills`.

The pooler and the server behind it are killed under load. A relay does not work behind a transaction pooler, which
`pillarbox doctor` reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.soak.outages import HookSocket

LONG = 180.0


class PoolerOutages:
    """Kills the pooler, then the server behind it, in turn, and starts it again."""

    def __init__(self, pooler: PgBouncer, server: PostgresServer) -> None:
        self._both = (pooler, server)
        self.killed: list[PgBouncer | PostgresServer] = []

    def cut(self) -> None:
        self.killed.append(self._both[len(self.killed) % 2])
        self.killed[-1].kill()

    def restore(self) -> None:
        self.killed[-1].start()


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A server for one test, to be killed."""
    with available(PostgresServer) as server:
        yield server


@pytest.fixture
def pooler(postgres: PostgresServer) -> Iterator[PgBouncer]:
    """With fewer sessions than clients: they share them."""
    with available(lambda: PgBouncer(postgres, pool_size=4)) as server:
        yield server


def test_a_killed_pooler_and_a_killed_server_behind_it_lose_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    postgres: PostgresServer,
    pooler: PgBouncer,
    rabbitmq_server: RabbitMQServer,
) -> None:
    outages = PoolerOutages(pooler, postgres)
    with closing(HookSocket(tmp_path, {"database": outages})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "kill-consumer",
            "cut-database",
            store=postgres.url(),
            pooler=pooler.url(),
            transport=rabbitmq_server.url(),
            seconds=LONG,
            faults=24,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert {pooler, postgres} <= set(outages.killed)
    assert [kind for kind in ("kill", "kill-consumer", "cut-database") if not result.effective[kind]] == []
    refused = f"port {pooler.port} failed: Connection refused"
    assert any(refused in log.read_text() for log in folder.glob("writer-*.log")), "no writer missed the pooler"
