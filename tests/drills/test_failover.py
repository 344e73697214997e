"""The primary of a database is killed under load, and its replica is promoted: `make drills`.

With synchronous replication nothing is lost. With asynchronous replication a failover loses what the replica had not
received: the drill must show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pillarbox.ops.drill.result import DrillResult
from pillarbox.ops.drill.schedule import FaultKind
from tests.extremes.links import FaultyProxy
from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.mariadb_pair import MariaDBPair
from tests.servers.postgres_pair import PostgresPair
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 120.0
LAG = 200_000
"""Bytes of the log."""


Pair = PostgresPair | MariaDBPair


class Failover:
    """Kills the primary, promotes the replica, and makes the former primary the next replica.

    The store of MariaDB takes one host: `address` leads to the primary, as a proxy or a name in DNS would.
    """

    def __init__(self, pair: Pair, address: FaultyProxy | None, *, lagging: bool) -> None:
        self._pair = pair
        self._address = address
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
        if self._address is not None:
            self._address.lead_to(self._pair.primary.port)
        self._pair.rebuild()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two servers, and what a drill on them needs."""

    pair: Pair
    store: str
    address: FaultyProxy | None = None
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    hooks: Path

    def drill(self, *kinds: FaultKind, lagging: bool, faults: int) -> DrillResult:
        failover = Failover(self.pair, self.address, lagging=lagging)
        with closing(HookSocket(self.hooks, {"database": failover})) as hooks:
            return drilled(
                self.folder,
                self.monkeypatch,
                *kinds,
                store=self.store,
                seconds=LONG,
                faults=faults,
                cut_database=hooks.command("database", "cut"),
                restore_database=hooks.command("database", "restore"),
            )


@pytest.fixture(params=["postgres", "mariadb"])
def scene(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, synchronous: bool
) -> Iterator[Scene]:
    make = partial(Scene, folder=folder, monkeypatch=monkeypatch, hooks=tmp_path)
    if request.param == "postgres":
        with available(lambda: PostgresPair(synchronous=synchronous)) as postgres:
            yield make(pair=postgres, store=postgres.url())
        return
    with (
        available(lambda: MariaDBPair(synchronous=synchronous)) as mariadb,
        closing(FaultyProxy(mariadb.primary.port)) as address,
    ):
        mariadb.primary.create_database("shop")
        store = mariadb.primary.url("shop").replace(f":{mariadb.primary.port}/", f":{address.port}/")
        yield make(pair=mariadb, store=store, address=address)


@pytest.mark.parametrize("synchronous", [True], ids=[""])
def test_a_synchronous_failover_loses_nothing(scene: Scene) -> None:
    result = scene.drill("kill", "cut-database", lagging=False, faults=6)
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["kill"] > 0
    assert result.effective["cut-database"] > 0


@pytest.mark.parametrize("synchronous", [False], ids=[""])
def test_an_asynchronous_failover_loses_what_the_replica_had_not_received(scene: Scene) -> None:
    """Committed events are gone, and so are the effects of delivered ones."""
    result = scene.drill("cut-database", lagging=True, faults=1)
    assert result.conclusion == "failed"
    assert result.findings.lost or result.findings.wrong_effects
