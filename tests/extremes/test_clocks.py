"""Wall clocks that jump by an hour: of the host of a relay, and of the database server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from tests.databases import cloned, make_mariadb_tables, make_template, mariadb_database
from tests.extremes.clocks import HOUR, FakeClock
from tests.extremes.conftest import MakeScene
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.integration.redis.reading import ids as entry_ids
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

EVENTS = 500
FEW = 20
EPOCH = {"postgresql": "SELECT extract(epoch FROM now())::bigint", "mariadb": "SELECT unix_timestamp()"}


@pytest.fixture
def clock() -> Iterator[FakeClock]:
    with closing(available(FakeClock)) as clock:
        yield clock


def after(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_relay_whose_clock_jumps_keeps_its_lanes(
    make_scene: MakeScene, any_store: str, rabbitmq_server: RabbitMQServer, clock: FakeClock, seconds: int
) -> None:
    broker = rabbitmq_server.url()
    scene = make_scene(store=any_store, transport=broker)
    jumping = scene.start(environment=clock.environment)
    clock.serve(jumping.pid)
    healthy = scene.start()
    scene.wait_shared()
    owners = scene.ownership()
    # Due by the clock of the database, which on SQLite is that of the process that asks.
    later = [] if any_store.startswith("sqlite:") else scene.schedule(FEW, due=after(HOUR / 2))
    with scene.under_load():
        scene.wait_delivered(EVENTS)
        clock.jump(seconds)
        scene.wait_delivered(EVENTS)
    if later:
        scene.schedule(FEW, due=after(2))
    scene.wait_drained(but=len(later))
    assert scene.waiting() == set(later)
    assert scene.ownership() == owners
    received = from_queue(broker, scene.event_type)
    scene.assert_sound(received)
    # The relay with the wrong clock takes over from a crashed one, as any relay does.
    with scene.under_load():
        healthy.kill()
        scene.wait_shared()
    scene.wait_drained(but=len(later))
    scene.stop()
    assert clock.shows_in(jumping.story(), seconds), "the clock did not jump"
    assert scene.attempts() == 0
    scene.assert_sound(received + from_queue(broker, scene.event_type), duplicates=MAX_IN_FLIGHT)


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
