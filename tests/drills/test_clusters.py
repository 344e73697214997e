"""Nodes of a RabbitMQ cluster are killed under load: quorum queues lose nothing. `make drills`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.drilling import drilled
from tests.servers.availability import available
from tests.servers.rabbitmq_cluster import RabbitMQCluster
from tests.soak.outages import HookSocket

LONG = 180.0


class NodeOutages:
    """Kills the leader of a queue, then a node that is not, in turn, and starts it again."""

    def __init__(self, cluster: RabbitMQCluster) -> None:
        self._cluster = cluster
        self._killed = cluster.nodes[0]
        self.kinds: list[str] = []

    def cut(self) -> None:
        leader = self._cluster.leader()
        others = [node for node in self._cluster.nodes if node is not leader]
        self.kinds.append("follower" if len(self.kinds) % 2 else "leader")
        self._killed = leader if self.kinds[-1] == "leader" else others[0]
        self._killed.kill()

    def restore(self) -> None:
        self._killed.start()
        self._cluster.wait_complete()


@pytest.fixture(scope="module")
def cluster() -> Iterator[RabbitMQCluster]:
    with available(RabbitMQCluster) as running:
        yield running


def test_a_killed_leader_and_a_killed_follower_lose_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres_url: str, cluster: RabbitMQCluster
) -> None:
    outages = NodeOutages(cluster)
    with closing(HookSocket(tmp_path, {"broker": outages})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-broker",
            store=postgres_url,
            transport=cluster.url(),
            seconds=LONG,
            faults=10,
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["kill"] > 0
    assert result.effective["cut-broker"] > 0
    assert {"leader", "follower"} <= set(outages.kinds)
