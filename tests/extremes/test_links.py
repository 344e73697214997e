"""Slow and lossy links to each broker and to each database: nothing is lost, and events flow again."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Literal

import psycopg
import pymysql
import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.linked import QUICK, STORES, Linked, port_of, received
from tests.extremes.links import (
    Condition,
    FaultyProxy,
    Loss,
    is_commit_reply,
    is_commit_request,
    is_mariadb_commit,
    is_mariadb_settlement,
    is_settlement,
    mariadb_packet,
    postgres_message,
    postgres_request,
)
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 200
FEW = 20
LEAST = 20
"""Bytes of an event that cross the link to a broker or a database, compressed or not."""
RESETS = 5
LOST = 3


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
    assert linked.link.hampered > EVENTS * LEAST, "the relay does not use the link"
    finish(linked, duplicates=0)


@pytest.mark.parametrize("direction", ["there", "back"])
def test_a_link_that_is_silent_in_one_direction(linked: Linked, direction: Literal["there", "back"]) -> None:
    fall_silent(linked, Condition(hole=direction))


def test_a_link_that_is_silent_in_both_directions(linked: Linked) -> None:
    fall_silent(linked, Condition(hole="both"))


def fall_silent(linked: Linked, silence: Condition) -> None:
    scene = linked.scene
    relay = scene.start(QUICK)
    scene.write(FEW)
    scene.wait_drained()
    warnings = relay.story().count(" WARNING ")
    with linked.link.condition(silence):
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
            scene.wait_until(lambda: linked.link.connections > 0, what="a connection is open")
            linked.link.reset()
    finish(linked, duplicates=RESETS * MAX_IN_FLIGHT)


def test_lost_confirms_are_sent_again(lossy: Linked) -> None:
    assert lossy.loss is not None
    lose(lossy.scene, lossy.loss)
    finish(lossy, duplicates=LOST * MAX_IN_FLIGHT)


SETTLEMENTS = {
    "postgres": partial(Loss, size=postgres_message, chosen=is_settlement, resets=True),
    "mariadb": partial(Loss, size=mariadb_packet, replies_to=is_mariadb_settlement, resets=True),
}


@pytest.mark.parametrize("database", STORES)
def test_a_settlement_whose_answer_is_lost_repeats_nothing(
    request: pytest.FixtureRequest, make_scene: MakeScene, database: str, rabbitmq_server: RabbitMQServer
) -> None:
    loss = SETTLEMENTS[database]()
    straight = str(request.getfixturevalue(f"{database}_url"))
    with closing(FaultyProxy(port_of(straight), loss)) as link:
        scene = make_scene(store=straight, transport=rabbitmq_server.url(), STORE=through(link, straight))
        lose(scene, loss)
        assert scene.relays[0].said("store failed")
        finish(Linked(scene, link, lambda: received(rabbitmq_server, scene.event_type)), duplicates=0)


COMMITS = {
    "postgres-request": partial(Loss, size=postgres_request, chosen=is_commit_request, resets=True, of_clients=True),
    "postgres-reply": partial(Loss, size=postgres_message, chosen=is_commit_reply, resets=True),
    "mariadb-request": partial(Loss, size=mariadb_packet, chosen=is_mariadb_commit, resets=True, of_clients=True),
    "mariadb-reply": partial(Loss, size=mariadb_packet, replies_to=is_mariadb_commit, resets=True),
}


@pytest.mark.parametrize("lost", COMMITS)
def test_a_producer_whose_commit_is_not_answered(
    request: pytest.FixtureRequest, make_scene: MakeScene, rabbitmq_server: RabbitMQServer, lost: str
) -> None:
    """What the database committed arrives once, and the rest never, although the producer sees the same error."""
    loss = COMMITS[lost]()
    database, _, part = lost.partition("-")
    straight = str(request.getfixturevalue(f"{database}_url"))
    with closing(FaultyProxy(port_of(straight), loss)) as link:
        scene = make_scene(store=through(link, straight), transport=rabbitmq_server.url(), STORE=straight)
        scene.start()
        for _ in range(LOST):
            scene.write(FEW)
            loss.left = 1
            with pytest.raises((psycopg.OperationalError, pymysql.err.OperationalError)):
                scene.write(FEW)
            assert loss.left == 0, "no message was lost"
        scene.write(FEW)
        scene.wait_drained()
        scene.stop()
        assert scene.ledger.count == (LOST + 1) * FEW + (LOST * FEW if part == "reply" else 0)
        scene.assert_sound(received(rabbitmq_server, scene.event_type))


def through(link: FaultyProxy, url: str) -> str:
    """Return the URL of a server by way of the link."""
    return url.replace(f":{port_of(url)}/", f":{link.port}/")


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
