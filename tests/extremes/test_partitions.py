"""A server of a cluster is cut off from the others while a relay is connected to it: the relay goes on with another
one, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import nats.errors
import pytest
from nats.js.api import StreamInfo

from tests.drills.test_nats_cluster import is_complete
from tests.extremes.conftest import MakeScene
from tests.extremes.linked import QUICK, received
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.integration.nats.streams import jetstream
from tests.servers.availability import available
from tests.servers.nats_partition import NatsPartition
from tests.servers.waiting import wait_until

EVENTS = 200
REPLICAS = 3
BOUND = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[NatsPartition]:
    with available(NatsPartition) as running:
        yield running


def info(cluster: NatsPartition, stream: str, *, without: str = "") -> StreamInfo | None:
    """What the servers, but one, know of a stream; None while they do not answer."""

    async def ask() -> StreamInfo:
        urls = [server.url() for name, server in cluster.servers.items() if name != without]
        async with jetstream(",".join(urls)) as server:
            return await server.stream_info(stream)

    try:
        return asyncio.run(ask())
    except nats.errors.Error:
        return None


def leader(cluster: NatsPartition, stream: str, *, without: str = "") -> str:
    """The leader of a stream; "" while it has none."""
    found = info(cluster, stream, without=without)
    return str((found and found.cluster and found.cluster.leader) or "")


def is_whole(cluster: NatsPartition, stream: str) -> bool:
    """Whether the stream has a leader, and all replicas have all messages."""
    found = info(cluster, stream)
    return found is not None and is_complete(found)


def stored(cluster: NatsPartition, stream: str) -> list[str]:
    """What the stream has, once the cluster answers: it recovers from the partition."""
    found: list[str] = []

    def answers() -> bool:
        try:
            found[:] = received(cluster, stream)
        except nats.errors.Error:
            return False
        return True

    wait_until(
        lambda: is_whole(cluster, stream) and answers(), bound=2 * BOUND, what=f"{stream} can be read", pause=0.5
    )
    return found


def lead(cluster: NatsPartition, stream: str, wanted: str, *, is_leader: bool) -> None:
    """Let a server become the leader of a stream, or let another one."""

    async def step_down() -> None:
        async with jetstream(cluster.url()) as server:
            await server._api_request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", timeout=10)

    def is_so() -> bool:
        found = leader(cluster, stream)
        if not found:
            return False
        if (found == wanted) is not is_leader:
            asyncio.run(step_down())
            return False
        return True

    wait_until(is_so, bound=BOUND, what=f"{wanted} leads {stream}: {is_leader}", pause=0.5)


@pytest.mark.parametrize("is_leader", [True, False], ids=["leader", "follower"])
def test_a_nats_server_that_is_cut_off_loses_nothing(
    make_scene: MakeScene, postgres_url: str, cluster: NatsPartition, is_leader: bool
) -> None:
    settings = {"TRANSPORTS__NATS__URL": cluster.url(), "TRANSPORTS__NATS__REPLICAS": str(REPLICAS)}
    scene = make_scene(store=postgres_url, **settings)
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    [minority] = [name for name in cluster.servers if cluster.clients(name)]
    lead(cluster, scene.event_type, minority, is_leader=is_leader)
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        cluster.cut_off(minority)
        try:
            wait_until(
                lambda: leader(cluster, scene.event_type, without=minority) not in ("", minority),
                bound=BOUND,
                what="the majority has a leader",
            )
            scene.wait_until(lambda: not cluster.clients(minority), what="the relay leaves the minority")
            scene.wait_delivered(EVENTS)
        finally:
            cluster.reconnect()
    scene.write(EVENTS)
    scene.wait_drained()
    assert relay.running
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(stored(cluster, scene.event_type), duplicates=MAX_IN_FLIGHT)
