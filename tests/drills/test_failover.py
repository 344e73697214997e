"""A PostgreSQL primary is killed under load, and its replica is promoted: `make drills`.

With synchronous replication nothing is lost. With asynchronous replication a failover loses what the replica had not
received: the drill must show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.postgres_pair import PostgresPair
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 120.0
LAG = 200_000
"""Bytes of WAL."""


class Failover:
    """Kills the primary, promotes the replica, and makes the former primary the next replica."""

    def __init__(self, pair: PostgresPair, *, lagging: bool) -> None:
        self._pair = pair
        self._lagging = lagging

    def cut(self) -> None:
        if self._lagging:
            self._pair.freeze_replica()
            before = self._pair.written()
            wait_until(lambda: self._pair.written() > before + LAG, bound=60, what="the replica lags")
        self._pair.primary.kill()
        if self._lagging:
            self._pair.thaw_replica()

    def restore(self) -> None:
        self._pair.fail_over()
        self._pair.rebuild()


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[PostgresPair]:
    with available(lambda: PostgresPair(synchronous=request.param)) as running:
        yield running


@pytest.mark.parametrize("pair", [True], indirect=True)
def test_a_synchronous_failover_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pair: PostgresPair
) -> None:
    with closing(HookSocket(tmp_path, {"database": Failover(pair, lagging=False)})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-database",
            store=pair.url(),
            seconds=LONG,
            faults=6,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["kill"] > 0
    assert result.effective["cut-database"] > 0


@pytest.mark.parametrize("pair", [False], indirect=True)
def test_an_asynchronous_failover_loses_what_the_replica_had_not_received(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pair: PostgresPair
) -> None:
    """Committed events are gone, and so are the effects of delivered ones."""
    with closing(HookSocket(tmp_path, {"database": Failover(pair, lagging=True)})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "cut-database",
            store=pair.url(),
            seconds=LONG,
            faults=1,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert result.conclusion == "failed"
    assert result.findings.lost or result.findings.wrong_effects
