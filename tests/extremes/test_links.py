"""Slow and lossy links to each broker and to the database: nothing is lost, and events flow again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.links import Condition, FaultyProxy, Loss, amqp_frame, is_confirm, is_settlement, postgres_message
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.integration.nats.streams import stored_ids
from tests.integration.redis.reading import ids as entry_ids
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

EVENTS = 200
FEW = 20
RESETS = 5
LOST = 3
QUICK = {
    "RELAY__LEASE": "6s",
    "RELAY__SEND_TIMEOUT": "2s",
    "RELAY__HEARTBEAT_INTERVAL": "500ms",
    "STORE__STATEMENT_TIMEOUT": "3s",
}
"""Settings of a relay that soon notices a silent server."""


class Linked:
    """A scene with a link to one of its servers."""

    def __init__(self, scene: Scene, link: FaultyProxy, receive: Callable[[], list[str]]) -> None:
        self.scene = scene
        self.link = link
        self.receive = receive


@pytest.fixture(params=["rabbitmq", "postgres", "nats", "redis"])
def linked(request: pytest.FixtureRequest, make_scene: MakeScene, postgres_url: str) -> Iterator[Linked]:
    """A relay's link to each broker and to the database; writers and receivers do not use it."""
    broker = request.getfixturevalue(f"{'rabbitmq' if request.param == 'postgres' else request.param}_server")
    straight = postgres_url if request.param == "postgres" else broker.url()
    server = int(straight.partition("@")[2].partition(":")[2].partition("/")[0]) if "@" in straight else broker.port
    with closing(FaultyProxy(server)) as link:
        linked_url = straight.replace(f":{server}", f":{link.port}")
        ways = {"STORE": linked_url} if request.param == "postgres" else {"TRANSPORT": linked_url}
        scene = make_scene(store=postgres_url, **({"TRANSPORT": broker.url()} | ways))
        yield Linked(scene, link, lambda: received(broker, scene.event_type))
        scene.close()


def received(broker: RabbitMQServer | NatsServer | RedisServer, name: str) -> list[str]:
    if isinstance(broker, RabbitMQServer):
        return from_queue(broker.url(), name)
    if isinstance(broker, NatsServer):
        return asyncio.run(stored_ids(broker.url(), name))
    return entry_ids(broker, name)


def finish(linked: Linked, *, duplicates: int) -> None:
    scene = linked.scene
    scene.write(EVENTS)
    scene.wait_drained()
    assert all(relay.running for relay in scene.relays)
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(linked.receive(), duplicates=duplicates)


@pytest.mark.parametrize(
    "condition",
    [Condition(delay=0.05), Condition(slice=1), Condition(rate=50_000)],
    ids=["delay", "single-bytes", "50-kB-per-second"],
)
def test_a_slow_link_repeats_nothing(linked: Linked, condition: Condition) -> None:
    linked.scene.start()
    linked.scene.write(FEW)
    linked.scene.wait_drained()
    with linked.link.condition(condition):
        linked.scene.write(EVENTS)
        linked.scene.wait_drained()
    finish(linked, duplicates=0)


@pytest.mark.parametrize("direction", ["there", "back"])
def test_a_link_that_is_silent_in_one_direction(linked: Linked, direction: str) -> None:
    scene = linked.scene
    relay = scene.start(QUICK)
    scene.write(FEW)
    scene.wait_drained()
    warnings = relay.story().count(" WARNING ")
    with linked.link.condition(Condition(hole=direction)):  # type: ignore[arg-type] # one of both
        scene.write(EVENTS)
        scene.wait_until(lambda: relay.story().count(" WARNING ") > warnings, what="the relay notices the silence")
        assert linked.link.held > 0
        assert scene.pending() > 0
    finish(linked, duplicates=MAX_IN_FLIGHT)


def test_a_link_that_is_reset_under_load(linked: Linked) -> None:
    scene = linked.scene
    scene.start(QUICK)
    with scene.under_load():
        for _ in range(RESETS):
            scene.wait_delivered(EVENTS)
            linked.link.reset()
    finish(linked, duplicates=RESETS * MAX_IN_FLIGHT)


def test_lost_confirms_are_sent_again(
    make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    loss = Loss(size=amqp_frame, chosen=is_confirm)
    with closing(FaultyProxy(rabbitmq_server.port, loss)) as link:
        transport = rabbitmq_server.url().replace(f":{rabbitmq_server.port}", f":{link.port}")
        scene = make_scene(store=postgres_url, transport=transport)
        lose(scene, loss)
        finish(
            Linked(scene, link, lambda: received(rabbitmq_server, scene.event_type)), duplicates=LOST * MAX_IN_FLIGHT
        )


def test_a_settlement_whose_answer_is_lost_repeats_nothing(
    make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    loss = Loss(size=postgres_message, chosen=is_settlement, resets=True)
    server = int(postgres_url.rpartition(":")[2].partition("/")[0])
    with closing(FaultyProxy(server, loss)) as link:
        store = postgres_url.replace(f":{server}/", f":{link.port}/")
        scene = make_scene(store=postgres_url, transport=rabbitmq_server.url(), STORE=store)
        lose(scene, loss)
        assert scene.relays[0].said("store failed")
        finish(Linked(scene, link, lambda: received(rabbitmq_server, scene.event_type)), duplicates=0)


def lose(scene: Scene, loss: Loss) -> None:
    """Let a relay work while the link loses some messages."""
    scene.start(QUICK)
    scene.write(FEW)
    scene.wait_drained()
    for _ in range(LOST):
        loss.left = 1
        scene.write(EVENTS)
        scene.wait_drained()
        assert loss.left == 0, "no message was lost"
