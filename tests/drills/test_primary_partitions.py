"""A primary that accepts writes is cut off from its synchronous replica, which is promoted: `make drills`.

Each is in a network namespace; clients reach both. What the primary accepts meanwhile it does not acknowledge: its
commits wait for the replica. Before the replica is promoted, the primary is killed, as a cluster manager fences it:
otherwise a client could go on reading there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.extremes.links import FaultyProxy
from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.mariadb_pair import MariaDBPair
from tests.servers.postgres_pair import PostgresPair
from tests.servers.switched_network import SwitchedNetwork
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 600.0
FAULTS = 2
Pair = PostgresPair | MariaDBPair


class Partitions:
    """Pulls the cable between primary and replica; then fences the primary and promotes the replica."""

    def __init__(self, pair: Pair, network: SwitchedNetwork, promoted: Callable[[], None]) -> None:
        self._pair = pair
        self._network = network
        self._promoted = promoted
        self.waiting: list[int] = []
        """Commits that the primary did not acknowledge, for each partition."""

    def cut(self) -> None:
        self._network.pull(next(host for host in self._network.hosts if host.address == self._pair.primary.host))
        wait_until(lambda: self._pair.waiting_commits() > 0, bound=90, what="commits wait for the replica")

    def restore(self) -> None:
        self.waiting.append(self._pair.waiting_commits())
        self._pair.primary.kill()
        for host in self._network.hosts:
            self._network.plug(host)
        self._pair.fail_over()
        self._promoted()
        self._pair.rebuild()


@pytest.fixture
def network() -> Iterator[SwitchedNetwork]:
    with closing(available(lambda: SwitchedNetwork(2))) as network:
        yield network


def assert_nothing_is_lost(
    pair: Pair,
    network: SwitchedNetwork,
    store: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    promoted: Callable[[], None] = lambda: None,
) -> None:
    partitions = Partitions(pair, network, promoted)
    with closing(HookSocket(folder.parent, {"database": partitions})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "cut-database",
            store=store,
            seconds=LONG,
            faults=FAULTS,
            cut_database=hooks.command("database", "cut"),
            restore_database=hooks.command("database", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-database"] == len(partitions.waiting) >= FAULTS
    assert all(partitions.waiting)


def test_a_postgresql_primary_that_is_cut_off_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, network: SwitchedNetwork
) -> None:
    with available(lambda: PostgresPair(synchronous=True, hosts=network.hosts)) as pair:
        assert_nothing_is_lost(pair, network, f"{pair.url()}?sslmode=disable", folder, monkeypatch)


def test_a_mariadb_primary_that_is_cut_off_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, network: SwitchedNetwork
) -> None:
    with (
        available(lambda: MariaDBPair(synchronous=True, hosts=network.hosts)) as pair,
        closing(FaultyProxy(pair.primary.port)) as address,
    ):

        def promoted() -> None:
            address.lead_to(pair.primary.port, host=pair.primary.host)

        promoted()
        pair.primary.create_database("shop")
        store = f"mariadb://root@127.0.0.1:{address.port}/shop"
        assert_nothing_is_lost(pair, network, store, folder, monkeypatch, promoted=promoted)
