"""Wall clocks that jump by an hour: on the hosts of relays, of receivers of webhooks and of database servers."""

from __future__ import annotations

import asyncio
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import randbytes
from typing import TypeVar

import pytest
from confluent_kafka import KafkaError

from tests.databases import cloned, make_mariadb_tables, make_template, mariadb_database
from tests.extremes.clocks import HOUR, FakeClock
from tests.extremes.conftest import PARTITIONS, MakeScene
from tests.extremes.linked import QUICK, WEBHOOK, Linked, received
from tests.extremes.links import Condition
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.extremes.verifying_receiver import ACCEPTED, REFUSED, URL
from tests.integration.kafka.topics import read_all
from tests.integration.redis.reading import ids as entry_ids
from tests.servers import processes
from tests.servers.availability import available
from tests.servers.kafka import PRODUCE, KafkaServer
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.waiting import wait_until

EVENTS = 500
FEW = 20
EPOCH = {"postgresql": "SELECT extract(epoch FROM now())::bigint", "mariadb": "SELECT unix_timestamp()"}


def after(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_relay_whose_clock_jumps_keeps_its_lanes(
    make_scene: MakeScene, any_store: str, rabbitmq_server: RabbitMQServer, clock: FakeClock, seconds: int
) -> None:
    scene = make_scene(store=any_store, transport=rabbitmq_server.url())
    taken: list[str] = []

    def receive() -> list[str]:
        taken.extend(received(rabbitmq_server, scene.event_type))
        return taken

    keep_lanes(scene, clock, seconds, receive)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_relay_whose_clock_jumps_sends_to_kafka(
    make_scene: MakeScene, postgres_url: str, kafka_server: KafkaServer, clock: FakeClock, seconds: int
) -> None:
    scene = make_scene(store=postgres_url, transport=kafka_server.url())
    kafka_server.create_topic(scene.event_type, PARTITIONS)
    keep_lanes(scene, clock, seconds, lambda: received(kafka_server, scene.event_type))
    written = [one.timestamp()[1] / 1000 for one in read_all(kafka_server.bootstrap, scene.event_type)]
    wrong = [one for one in written if abs(one - after(seconds).timestamp()) < HOUR / 4]
    assert 0 < len(wrong) < len(written), "the records do not show the jump"


def keep_lanes(scene: Scene, clock: FakeClock, seconds: int, receive: Callable[[], list[str]]) -> None:
    """Let the clock of one of two relays jump, then kill the other."""
    jumping = scene.start(environment=clock.environment)
    clock.serve(jumping.pid)
    healthy = scene.start()
    scene.wait_shared()
    owners = scene.ownership()
    # Due by the clock of the database, which on SQLite is that of the process that asks.
    later = [] if scene.store.startswith("sqlite:") else scene.schedule(FEW, due=after(HOUR / 2))
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        clock.jump(seconds)
        scene.wait_delivered(EVENTS)
    if later:
        scene.schedule(FEW, due=after(2))
    scene.wait_drained(but=len(later))
    assert scene.waiting() == set(later)
    assert scene.ownership() == owners
    scene.assert_sound(receive())
    # The relay with the wrong clock takes over from a crashed one, as any relay does.
    with scene.under_load():
        healthy.kill()
        scene.wait_shared()
    scene.wait_drained(but=len(later))
    scene.stop()
    assert clock.shows_in(jumping.story(), seconds), "the clock did not jump"
    assert scene.attempts() == 0
    scene.assert_sound(receive(), duplicates=MAX_IN_FLIGHT)


@pytest.mark.parametrize("linked", ["kafka"], indirect=True)
def test_a_clock_that_is_set_back_during_an_outage_does_not_prolong_it(linked: Linked, clock: FakeClock) -> None:
    """librdkafka waits until times of the wall clock: a wait during which that is set back takes longer."""
    scene = linked.scene
    relay = scene.start(QUICK, environment=clock.environment)
    clock.serve(relay.pid)
    scene.write(FEW)
    scene.wait_drained()
    with linked.link.condition(Condition(hole="both")):
        scene.write(FEW)
        for hours in (1, 2):
            warnings = relay.story().count(" WARNING ")
            clock.jump(-hours * HOUR)
            scene.wait_until(lambda: relay.story().count(" WARNING ") > warnings, what="the relay notices")  # noqa: B023
        assert scene.pending() > 0
    scene.wait_drained()
    scene.stop()
    assert clock.shows_in(relay.story(), -2 * HOUR), "the clock did not jump"
    assert scene.attempts() == 0
    scene.assert_sound(linked.receive(), duplicates=MAX_IN_FLIGHT)


def test_a_timestamp_that_kafka_refuses_uses_up_no_attempt(
    make_scene: MakeScene, postgres_url: str, kafka_server: KafkaServer
) -> None:
    """A broker refuses records that are ahead of its clock by more than `message.timestamp.after.max.ms`."""
    if not kafka_server.is_mock:
        pytest.skip("not supported: a real broker cannot be told to fail")
    scene = make_scene(store=postgres_url, transport=kafka_server.url())
    kafka_server.create_topic(scene.event_type)
    relay = scene.start()
    scene.write(FEW)
    scene.wait_drained()
    kafka_server.fail_requests(PRODUCE, *[KafkaError.INVALID_TIMESTAMP] * 1_000)
    scene.write(FEW)
    scene.wait_until(lambda: relay.said("Invalid timestamp"), what="Kafka refuses the timestamp")
    assert scene.pending() == FEW
    kafka_server.heal()
    scene.wait_drained()
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(received(kafka_server, scene.event_type))


SIGNED = """{webhook}
secrets = ["{secret}"]
"""


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("wrong", ["relay", "receiver"])
def test_webhooks_that_a_verifier_refuses_for_their_time_are_retried(
    make_scene: MakeScene, postgres_url: str, clock: FakeClock, wrong: str, seconds: int
) -> None:
    secret = f"whsec_{b64encode(randbytes(32)).decode()}"
    scene = make_scene(store=postgres_url)
    with verifying(scene.folder, secret, clock if wrong == "receiver" else None) as url:
        settings = SIGNED.format(webhook=WEBHOOK.format(url=url), secret=secret)
        (scene.folder / "pillarbox.toml").write_text(settings)
        relay = scene.start(environment=clock.environment if wrong == "relay" else None)
        if wrong == "relay":
            clock.serve(relay.pid)
        with scene.under_load():
            scene.wait_delivered(EVENTS)
            clock.jump(seconds)
            scene.wait_until(lambda: len(lines(scene.folder / REFUSED)) > FEW, what="the verifier refuses webhooks")
        assert scene.pending() > 0
        clock.jump(0)
        scene.write(FEW)
        scene.wait_drained()
        scene.stop()
    assert all("more than the tolerance" in one for one in lines(scene.folder / REFUSED))
    assert scene.attempts() > 0
    scene.assert_sound(lines(scene.folder / ACCEPTED))


@contextmanager
def verifying(folder: Path, secret: str, clock: FakeClock | None) -> Iterator[str]:
    """A receiver process that verifies signatures; yields its URL."""
    started = processes.spawn(
        [sys.executable, "-m", "tests.extremes.verifying_receiver", secret],
        name="receiver",
        folder=folder,
        log=folder / "receiver.log",
        environment={"PYTHONPATH": os.pathsep.join(sys.path)} | (clock.environment if clock else {}),
        privileged=True,
    )
    if clock:
        clock.serve(started.pid)
    try:
        url = folder / URL
        wait_until(lambda: started.must_run() and url.exists(), bound=60, what="the receiver listens")
        yield url.read_text()
    finally:
        started.kill()
        started.wait_gone(bound=60)
        processes.forget(started)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


TRIMMED = """
[destinations.orders]
stream = "{stream}"
max_age = "30m"
trim = "exact"

[[routes]]
to = ["orders"]
"""


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_relay_whose_clock_jumps_deletes_no_young_entry_of_a_stream(
    make_scene: MakeScene, sqlite_url: str, redis_server: RedisServer, clock: FakeClock, seconds: int
) -> None:
    scene = make_scene(store=sqlite_url, transport=redis_server.url())
    stream = scene.event_type
    (scene.folder / "pillarbox.toml").write_text(TRIMMED.format(stream=stream))
    relay = scene.start(environment=clock.environment)
    clock.serve(relay.pid)
    with redis_server.client() as client:
        server_seconds, _ = client.time()
        client.xadd(stream, {"id": "old"}, id=f"{(server_seconds - HOUR) * 1000}-0")
    scene.write(FEW)
    scene.wait_drained()
    clock.jump(seconds)
    scene.write(FEW)
    scene.wait_drained()
    # A new connection asks for the time again.
    with redis_server.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    scene.write(FEW)
    scene.wait_drained()
    scene.stop()
    assert clock.shows_in(relay.story(), seconds), "the clock did not jump"
    scene.assert_sound(entry_ids(redis_server, stream))


@contextmanager
def postgres_under(clock: FakeClock) -> Iterator[str]:
    with available(lambda: under_clock(PostgresServer(durable=False), clock)) as server:
        clock.serve(server.pid)
        with cloned(server, asyncio.run(make_template(server))) as url:
            yield url


@contextmanager
def mariadb_under(clock: FakeClock) -> Iterator[str]:
    with available(lambda: under_clock(MariaDBServer(durable=False), clock)) as server:
        clock.serve(server.pid)
        with mariadb_database(server) as url:
            asyncio.run(make_mariadb_tables(url))
            yield url


Jumping = TypeVar("Jumping", PostgresServer, MariaDBServer)


def under_clock(server: Jumping, clock: FakeClock) -> Jumping:
    server._binary = clock.script(server._binary, server.folder)
    return server


@pytest.mark.parametrize("database", [postgres_under, mariadb_under])
def test_a_database_whose_clock_jumps_loses_nothing(
    make_scene: MakeScene,
    database: Callable[[FakeClock], AbstractContextManager[str]],
    rabbitmq_server: RabbitMQServer,
    clock: FakeClock,
) -> None:
    broker = rabbitmq_server.url()
    with database(clock) as url:
        scene = make_scene(store=url, transport=broker)
        crashing = scene.start()
        scene.start()
        scene.wait_shared()
        within, beyond = scene.schedule(FEW, due=after(HOUR / 2)), scene.schedule(FEW, due=after(HOUR * 2))
        for offset in (HOUR, 0, -HOUR):
            with scene.under_load():
                clock.jump(offset)
                scene.wait_delivered(EVENTS)
            assert abs(scene.number(EPOCH[url.partition(":")[0]]) - after(offset).timestamp()) < HOUR / 4
            scene.schedule(FEW, due=after(offset + 2))
            scene.wait_drained(but=FEW)
            scene.wait_shared()
        assert scene.waiting() == set(beyond)
        # A crash under the clock that was set back is noticed as ever.
        with scene.under_load():
            crashing.kill()
            scene.wait_shared()
        scene.wait_drained(but=FEW)
        scene.stop()
        assert scene.attempts() == 0
        received = from_queue(broker, scene.event_type)
        assert set(within) <= set(received)
        # A jump ahead ends both leases once; the crash comes on top.
        scene.assert_sound(received, duplicates=3 * MAX_IN_FLIGHT)
