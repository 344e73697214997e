"""A full queue, stream, account or disk of a broker: what it refuses waits, is sent again, and uses up no attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, StorageType
from nats.js.errors import APIError

from tests.extremes.conftest import MakeScene
from tests.extremes.disks import MEGABYTE, SmallDisk
from tests.extremes.linked import QUICK, received
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.integration.nats.streams import jetstream
from tests.servers.availability import available
from tests.servers.nats import NatsServer
from tests.servers.ports import is_open
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.waiting import wait_until

T = TypeVar("T")

EVENTS = 200
MORE = 50
"""Events that still fit."""
LARGE = 10_000
SMALL = 16 * MEGABYTE
ACCOUNT = """accounts { tests {
    jetstream: { max_file: 2MB, max_mem: 2MB }
    users: [ { user: app, password: secret } ]
} }
no_auth_user: app"""


def wait_out(
    scene: Scene,
    broker: RabbitMQServer | NatsServer | RedisServer,
    *,
    fill: Callable[[], None],
    refusal: str,
    free: Callable[[], None],
    duplicates: int = 0,
) -> None:
    """Fill something while a relay works; free it once an event was refused for this reason; check the result."""
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    before = relay.story().count(refusal)
    fill()
    scene.write(EVENTS)
    scene.wait_until(
        lambda: (
            relay.story().count(refusal) > before
            or bool(scene.query(f"SELECT 1 FROM outbox_message WHERE last_error LIKE '%{refusal}%'"))
        ),
        what="the broker refuses an event",
    )
    assert scene.pending() > 0
    free()
    scene.write(EVENTS)
    scene.wait_drained()
    assert relay.running
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(received(broker, scene.event_type), duplicates=duplicates)


def on_nats(server: NatsServer, act: Callable[[JetStreamContext], Awaitable[T]]) -> T:
    async def run() -> T:
        async with jetstream(server.url()) as context:
            return await act(context)

    return asyncio.run(run())


def test_a_full_queue_of_rabbitmq(make_scene: MakeScene, postgres_url: str, rabbitmq_server: RabbitMQServer) -> None:
    scene = make_scene(store=postgres_url, transport=rabbitmq_server.url())
    name = scene.event_type

    def limit(messages: int) -> None:
        policy = f'[{{<<"max-length">>, {messages}}}, {{<<"overflow">>, <<"reject-publish">>}}]'
        named = f'<<"/">>, <<"{name}">>, <<"^{name}$">>'
        rabbitmq_server.evaluate(f'ok = rabbit_policy:set({named}, {policy}, 0, <<"queues">>, <<"tests">>)')

    wait_out(
        scene,
        rabbitmq_server,
        fill=lambda: limit(EVENTS + MORE),
        refusal="nacked",
        free=lambda: limit(100 * EVENTS),
    )
    rabbitmq_server.evaluate(f'ok = rabbit_policy:delete(<<"/">>, <<"{name}">>, <<"tests">>)')


def test_a_full_stream_of_nats(make_scene: MakeScene, postgres_url: str, nats_server: NatsServer) -> None:
    scene = make_scene(store=postgres_url, transport=nats_server.url())

    async def limit(context: JetStreamContext, messages: int) -> None:
        config = (await context.stream_info(scene.event_type)).config
        await context.update_stream(config.evolve(max_msgs=messages, discard=DiscardPolicy.NEW))

    wait_out(
        scene,
        nats_server,
        fill=lambda: on_nats(nats_server, lambda context: limit(context, EVENTS + MORE)),
        refusal="is full",
        free=lambda: on_nats(nats_server, lambda context: limit(context, -1)),
    )


@pytest.mark.parametrize("storage", StorageType)
def test_a_full_account_of_nats(make_scene: MakeScene, postgres_url: str, storage: StorageType) -> None:
    """It has no more disk, or no more memory, for its streams."""
    with available(lambda: NatsServer(lines=[ACCOUNT])) as server:
        scene = make_scene(store=postgres_url, transport=server.url())

        async def create(context: JetStreamContext) -> None:
            await context.add_stream(name=scene.event_type, storage=storage)
            await context.add_stream(name="ballast", storage=storage)

        async def fill(context: JetStreamContext) -> None:
            with pytest.raises(APIError):
                while True:
                    await context.publish("ballast", bytes(LARGE))

        async def free(context: JetStreamContext) -> None:
            await context.delete_stream("ballast")

        on_nats(server, create)
        wait_out(
            scene,
            server,
            fill=lambda: on_nats(server, fill),
            refusal="account is full",
            free=lambda: on_nats(server, free),
        )


@pytest.fixture
def disk() -> Iterator[SmallDisk]:
    with closing(available(lambda: SmallDisk(SMALL))) as small:
        yield small


def moved(server: NatsServer | RedisServer, folder: Path, disk: SmallDisk) -> None:
    """Move the data of a server to a disk."""
    server.stop()
    disk.move(folder)
    server.start()


def test_a_full_disk_under_nats(make_scene: MakeScene, postgres_url: str, disk: SmallDisk) -> None:
    """The server disables JetStream until it is restarted."""
    with available(NatsServer) as server:
        moved(server, server.folder / "data", disk)
        scene = make_scene(store=postgres_url, transport=server.url())

        def free() -> None:
            disk.free()
            server.kill()  # it would not end in order
            server.start()

        wait_out(scene, server, fill=disk.fill, refusal="did not", free=free, duplicates=MAX_IN_FLIGHT)


def test_a_full_disk_under_redis(make_scene: MakeScene, postgres_url: str, disk: SmallDisk) -> None:
    """The server refuses writes until it has written its log again."""
    with available(lambda: RedisServer(settings={"appendfsync": "everysec"})) as server:
        moved(server, server.folder / "appendonlydir", disk)
        scene = make_scene(store=postgres_url, transport=server.url())
        wait_out(scene, server, fill=disk.fill, refusal="MISCONF", free=disk.free, duplicates=MAX_IN_FLIGHT)


def test_a_full_disk_ends_a_redis_that_syncs_always(make_scene: MakeScene, postgres_url: str, disk: SmallDisk) -> None:
    with available(RedisServer) as server:
        moved(server, server.folder / "appendonlydir", disk)
        scene = make_scene(store=postgres_url, transport=server.url())

        def free() -> None:
            wait_until(lambda: not is_open(server.port), bound=60, what="the server has ended")
            disk.free()
            server.restart()

        wait_out(scene, server, fill=disk.fill, refusal="lost the connection", free=free, duplicates=MAX_IN_FLIGHT)
