"""Servers of a NATS cluster are killed under load: streams with three replicas lose nothing. `make drills`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import nats.errors
import pytest
from nats.js.api import StreamInfo

from tests.faults.drilling import drilled
from tests.integration.nats.streams import jetstream
from tests.servers.availability import available
from tests.servers.nats import NatsCluster
from tests.servers.waiting import wait_until
from tests.soak.outages import HookSocket

LONG = 180.0
REPLICAS = 3


class StreamOutages:
    """Kills the leader of the drill's stream, then a server that is not, in turn, and starts it again."""

    def __init__(self, cluster: NatsCluster) -> None:
        self._cluster = cluster
        self._killed = ""
        self.kinds: list[str] = []

    def cut(self) -> None:
        leaders = {one.config.name: one.cluster.leader for one in asyncio.run(self._streams()) if one.cluster}
        leader = leaders[min(leaders, key=lambda name: len(name or ""))]  # names of other streams begin with its name
        self.kinds.append("follower" if len(self.kinds) % 2 else "leader")
        others = [name for name in self._cluster.servers if name != leader]
        self._killed = str(leader) if self.kinds[-1] == "leader" else others[0]
        self._cluster.servers[self._killed].kill()

    def restore(self) -> None:
        """Wait for the replicas, or the next kill could take the majority of a stream."""
        self._cluster.servers[self._killed].start()
        wait_until(self._is_complete, bound=90, what="every stream has a leader and its replicas")

    def _is_complete(self) -> bool:
        try:
            return all(is_complete(one) for one in asyncio.run(self._streams()))
        except nats.errors.Error:
            return False

    async def _streams(self) -> list[StreamInfo]:
        async with jetstream(self._cluster.url()) as server:
            return await server.streams_info()


def is_complete(stream: StreamInfo) -> bool:
    replicas = (stream.cluster and stream.cluster.replicas) or []
    return len(replicas) == REPLICAS - 1 and all(one.current and not one.offline for one in replicas)


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    """It has a leader that creates streams."""

    async def create() -> None:
        async with jetstream(running.url()) as server:
            await server.add_stream(name="first", num_replicas=REPLICAS)
            await server.delete_stream("first")

    def is_usable() -> bool:
        try:
            asyncio.run(create())
        except nats.errors.Error:
            return False
        return True

    with available(NatsCluster) as running:
        wait_until(is_usable, bound=90, what="the cluster creates a stream")
        yield running


def test_a_killed_leader_and_a_killed_follower_lose_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres_url: str, cluster: NatsCluster
) -> None:
    monkeypatch.setenv("PILLARBOX_TRANSPORTS__NATS__URL", cluster.url())
    monkeypatch.setenv("PILLARBOX_TRANSPORTS__NATS__REPLICAS", str(REPLICAS))
    outages = StreamOutages(cluster)
    with closing(HookSocket(tmp_path, {"broker": outages})) as hooks:
        result = drilled(
            folder,
            monkeypatch,
            "kill",
            "cut-broker",
            store=postgres_url,
            seconds=LONG,
            faults=10,
            cut_broker=hooks.command("broker", "cut"),
            restore_broker=hooks.command("broker", "restore"),
        )
    assert (result.conclusion, result.violations) == ("passed", [])
    assert result.effective["kill"] > 0
    assert result.effective["cut-broker"] > 0
    assert {"leader", "follower"} <= set(outages.kinds)
    assert result.interruptions > 0
