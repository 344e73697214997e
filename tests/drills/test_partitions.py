"""A minority of a RabbitMQ cluster is cut off under load: quorum queues lose nothing. `make drills`.

Order is that in a queue without a consumer, which is read after the drill. The reader of the drill is cut off, too:
what was in flight to it is delivered again after newer messages, and through quarantine if that happened twice.

The minority is the node that most relays are connected to, so that they wait for confirms which never come. RabbitMQ
pauses it, see `tests/servers/rabbitmq_partition.py`; until then its clients stay connected to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pillarbox.ops.drill.checker import check
from pillarbox.ops.drill.ledger import read_writings
from pillarbox.ops.drill.result import DrillResult
from pillarbox.ops.drill.target import new_name
from tests.faults.drilling import drilled
from tests.faults.mutants import Guard
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.servers.availability import available
from tests.servers.rabbitmq_partition import RabbitMQHostNode, RabbitMQPartition
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 600.0
"""Seconds after which a drill ends if fewer partitions were possible; a busy machine needs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """What was cut off."""

    role: str
    """Of the minority in the queues: leader or follower."""
    from_clients: bool
    publishers: int
    """Relays that were connected to the minority."""


class Partitions:
    """Cuts off a leader, then a follower: from the other nodes, and every third and fourth time also from clients."""

    def __init__(self, cluster: RabbitMQPartition, minority: RabbitMQHostNode | None = None) -> None:
        self._cluster = cluster
        self._minority = minority
        self.name = new_name()
        """Of the drill."""
        self.made: list[Partition] = []

    def cut(self) -> None:
        number = len(self.made)
        if not number:
            self._create_witness()
        candidates = [self._minority] if self._minority else self._cluster.nodes
        wait_until(lambda: any(node.publishers for node in candidates), bound=60, what="a relay publishes")
        minority = max(candidates, key=lambda node: node.publishers)
        other = next(node for node in self._cluster.nodes if node is not minority)
        role, leader = ("follower", other) if number % 2 else ("leader", minority)
        self._cluster.lead(leader)
        made = Partition(role=role, from_clients=number % 4 >= 2, publishers=minority.publishers)
        self._cluster.cut_off(minority, from_clients=made.from_clients)
        self.made.append(made)

    def restore(self) -> None:
        self._cluster.reconnect()

    def published(self) -> list[str]:
        """The events since the first partition, in the order in which relays published them."""
        taken = take_all(self._cluster.nodes[0].url(), self._witness)
        return [str(one.properties.message_id) for one in taken]

    @property
    def _witness(self) -> str:
        return f"{self.name}-witness"

    def _create_witness(self) -> None:
        with channel(self._cluster.nodes[0].url()) as broker:
            broker.queue_declare(self._witness, durable=True, arguments={"x-queue-type": "quorum"})
            broker.queue_bind(self._witness, f"{self.name}.copies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A cluster, and what a drill on it needs."""

    cluster: RabbitMQPartition
    store: str
    folder: Path
    hooks: Path
    monkeypatch: pytest.MonkeyPatch

    def drill(self, partitions: Partitions, *, faults: int, url: str = "", without: Guard | None = None) -> DrillResult:
        """Run a drill whose only fault is the partition: it is void unless one took effect."""
        with closing(HookSocket(self.hooks, {"broker": partitions})) as hooks:
            result = drilled(
                self.folder,
                self.monkeypatch,
                "cut-broker",
                store=self.store,
                transport=url or self.cluster.url(),
                seconds=LONG,
                faults=faults,
                without=without,
                name=partitions.name,
                cut_broker=hooks.command("broker", "cut"),
                restore_broker=hooks.command("broker", "restore"),
            )
        published = partitions.published()
        assert published
        order = check(read_writings(self.folder, in_database=set()).ledger, published).out_of_order
        return replace(result, findings=result.findings._replace(out_of_order=order))


@pytest.fixture(scope="module")
def cluster() -> Iterator[RabbitMQPartition]:
    with available(RabbitMQPartition) as running:
        yield running


@pytest.fixture
def scene(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres_url: str, cluster: RabbitMQPartition
) -> Scene:
    return Scene(cluster=cluster, store=postgres_url, folder=folder, hooks=tmp_path, monkeypatch=monkeypatch)


def test_a_minority_that_is_cut_off_loses_nothing(scene: Scene) -> None:
    partitions = Partitions(scene.cluster)
    result = scene.drill(partitions, faults=4)
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-broker"] == len(partitions.made)
    assert {(one.role, one.from_clients) for one in partitions.made} == {
        ("leader", False),
        ("follower", False),
        ("leader", True),
        ("follower", True),
    }
    assert all(one.publishers for one in partitions.made)


def test_clients_that_know_only_the_minority_recover_with_it(scene: Scene) -> None:
    minority = scene.cluster.nodes[1]
    partitions = Partitions(scene.cluster, minority)
    result = scene.drill(partitions, faults=2, url=minority.url())
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["cut-broker"] == len(partitions.made)
    assert [one.role for one in partitions.made[:2]] == ["leader", "follower"]
    assert all(one.publishers for one in partitions.made)


def test_without_waiting_for_the_confirm_a_partition_loses_events(scene: Scene) -> None:
    minority = scene.cluster.nodes[1]
    result = scene.drill(Partitions(scene.cluster, minority), faults=1, url=minority.url(), without="confirm")
    assert result.conclusion == "failed"
    assert result.findings.lost
