"""Slow and lossy links to each broker and to each database: nothing is lost, and events flow again."""

from __future__ import annotations

from contextlib import closing
from typing import Literal

import psycopg
import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.linked import QUICK, Linked, port_of, received
from tests.extremes.links import (
    Condition,
    FaultyProxy,
    Loss,
    is_commit_reply,
    is_commit_request,
    is_settlement,
    postgres_message,
    postgres_request,
)
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 200
FEW = 20
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
    assert linked.link.accepted, "the relay does not use the link"
    with linked.link.condition(condition):
        linked.scene.write(EVENTS)
        linked.scene.wait_drained()
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


@pytest.mark.parametrize("lost", ["request", "reply"])
def test_a_producer_whose_commit_is_not_answered(
    make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer, lost: str
) -> None:
    """What the database committed arrives once, and the rest never, although the producer sees the same error."""
    if lost == "request":
        loss = Loss(size=postgres_request, chosen=is_commit_request, resets=True, of_clients=True)
    else:
        loss = Loss(size=postgres_message, chosen=is_commit_reply, resets=True)
    server = port_of(postgres_url)
    with closing(FaultyProxy(server, loss)) as link:
        producers = postgres_url.replace(f":{server}/", f":{link.port}/")
        scene = make_scene(store=producers, transport=rabbitmq_server.url(), STORE=postgres_url)
        scene.start()
        for _ in range(LOST):
            scene.write(FEW)
            loss.left = 1
            with pytest.raises(psycopg.OperationalError):
                scene.write(FEW)
            assert loss.left == 0, "no message was lost"
        scene.write(FEW)
        scene.wait_drained()
        scene.stop()
        assert scene.ledger.count == (LOST + 1) * FEW + (LOST * FEW if lost == "reply" else 0)
        scene.assert_sound(received(rabbitmq_server, scene.event_type))


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
