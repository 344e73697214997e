"""A Redis master fails with two replicas behind it, and one of them is promoted: what the relay was told to be accepted
is there. `wait_replicas` is 1.

Neither Sentinel nor Redis Cluster is involved: the test promotes the replica that has most, as Sentinel does, and the
name of the server (a link) then leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.linked import QUICK, received
from tests.extremes.links import Condition, FaultyProxy
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.integration.redis.reading import entries
from tests.servers.availability import available
from tests.servers.redis import RedisServer
from tests.servers.waiting import wait_until

EVENTS = 200
BOUND = 120.0


class Group:
    """A master, and two replicas that reach it over a link."""

    def __init__(self, opened: ExitStack) -> None:
        self.master = opened.enter_context(available(RedisServer))
        self.link = opened.enter_context(closing(FaultyProxy(self.master.port)))
        """From the replicas to the master."""
        settings = {"replicaof": f"127.0.0.1 {self.link.port}"}
        self.replicas = [opened.enter_context(available(lambda: RedisServer(settings=settings))) for _ in range(2)]
        self.name = opened.enter_context(closing(FaultyProxy(self.master.port)))
        """From the relay to the master."""
        self.wait_followed(self.master, 2)

    def wait_followed(self, master: RedisServer, count: int) -> None:
        """Wait until a master has so many replicas in step."""

        def is_followed() -> bool:
            with master.client() as client:
                found = client.info("replication")
            slaves = [found.get(f"slave{number}", {}) for number in range(2)]
            return len([one for one in slaves if one.get("state") == "online"]) >= count

        wait_until(is_followed, bound=BOUND, what=f"{count} replicas follow")

    def promote(self) -> None:
        """Make the replica with most the master of the other one, and let the name lead to it."""
        promoted, other = sorted(self.replicas, key=offset, reverse=True)
        follow(promoted, None)
        follow(other, promoted)
        self.wait_followed(promoted, 1)
        self.name.forward_to(promoted.port)
        self.old, self.master, self.replicas = self.master, promoted, [other]


def offset(replica: RedisServer) -> int:
    with replica.client() as client:
        return int(client.info("replication")["slave_repl_offset"])


def follow(server: RedisServer, master: RedisServer | None) -> None:
    with server.client() as client:
        client.execute_command("REPLICAOF", *(("NO", "ONE") if master is None else ("127.0.0.1", str(master.port))))


@pytest.fixture
def group() -> Iterator[Group]:
    with ExitStack() as opened:
        yield Group(opened)


@pytest.fixture
def scene(make_scene: MakeScene, postgres_url: str, group: Group) -> Scene:
    url = f"redis://127.0.0.1:{group.name.port}/0"
    return make_scene(store=postgres_url, TRANSPORTS__REDIS__URL=url, TRANSPORTS__REDIS__WAIT_REPLICAS="1")


def stored(server: RedisServer, scene: Scene) -> set[str]:
    return {entry.entry_id for entry in entries(server, scene.event_type)}


def finish(scene: Scene, group: Group) -> None:
    scene.write(EVENTS)
    scene.wait_drained()
    assert all(relay.running for relay in scene.relays)
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(received(group.master, scene.event_type), duplicates=2 * MAX_IN_FLIGHT)


def test_a_killed_replica_and_a_killed_master_lose_nothing(scene: Scene, group: Group) -> None:
    relay = scene.start(QUICK)
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        group.replicas[0].kill()
        scene.wait_delivered(EVENTS)
        group.replicas[0].start()
        group.wait_followed(group.master, 2)
        warnings = relay.warnings()
        group.master.kill()
        scene.wait_until(lambda: relay.warnings() > warnings, what="the relay notices")
        group.promote()
        scene.wait_delivered(EVENTS)
    finish(scene, group)


def test_a_master_that_is_cut_off_from_its_replicas_accepts_nothing_that_is_lost(scene: Scene, group: Group) -> None:
    """The relay stays connected to it, until its name leads to the promoted replica."""
    relay = scene.start(QUICK)
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        with group.link.condition(Condition(hole="both")):
            scene.wait_until(lambda: relay.said("of 1 replicas"), what="the relay notices")
            group.promote()
            scene.wait_delivered(EVENTS)
            assert stored(group.old, scene) - stored(group.master, scene), "the old master stored nothing alone"
        follow(group.old, group.master)
        group.wait_followed(group.master, 2)
    finish(scene, group)
    assert received(group.old, scene.event_type) == received(group.master, scene.event_type)
