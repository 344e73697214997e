"""Large payloads: 10 MB arrive byte by byte over every store and transport, 200 MB are refused everywhere."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

import psycopg
import pymysql
import pytest

from pillarbox import ConfigurationError, Outbox, RecordError
from pillarbox.core.event import Event
from pillarbox.core.payload import payload_limit
from pillarbox.schemes import open_store
from tests.databases import make_mariadb_tables, mariadb_database
from tests.extremes import handling
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected
from tests.extremes.receiving import WebhookReceiver
from tests.extremes.scene import Scene
from tests.integration.kafka import topics
from tests.integration.nats.streams import stored
from tests.integration.rabbitmq.consumer import take_all
from tests.integration.redis.reading import entries
from tests.servers.availability import available
from tests.servers.kafka import KafkaServer
from tests.servers.mariadb import MariaDBServer
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

TEN_MB = 10_000_000
TWO_HUNDRED_MB = 200_000_000
LIMIT = "16 MiB"
LARGEST = "64 MiB"
KEPT_BY_THE_MOCK = 4_000_000
"""Bytes."""


@pytest.fixture
def body() -> bytes:
    return random.randbytes(TEN_MB)


@pytest.fixture(scope="module")
def roomy_mariadb() -> Iterator[MariaDBServer]:
    """With the packets that docs/reference/mariadb.md asks for: twice the largest payload."""
    settings = {"max-allowed-packet": "512M", "innodb-log-file-size": "512M"}
    with available(lambda: MariaDBServer(durable=False, settings=settings)) as server:
        yield server


@pytest.fixture
def roomy_mariadb_url(roomy_mariadb: MariaDBServer) -> Iterator[str]:
    with mariadb_database(roomy_mariadb) as url:
        asyncio.run(make_mariadb_tables(url))
        yield url


def raise_limit(url: str, limit: str) -> None:
    async def apply() -> None:
        async with aclosing(open_store(url, max_payload=limit)) as store:
            await store.schema.apply()

    asyncio.run(apply())


def deliver(scene: Scene, body: bytes) -> list[str]:
    """Record a large event between small ones of its key, and wait until a relay has delivered all."""
    raise_limit(scene.store, LIMIT)
    scene.outbox = Outbox(max_payload=LIMIT)
    scene.start({"RECORD__MAX_PAYLOAD": LIMIT})
    bodies = [b"before", body, b"after"]
    with connected(scene.store) as connection:
        events = [Event(scene.event_type, one, key="key", content_type="application/x-bytes") for one in bodies]
        ids = scene.outbox.record(connection, *events)
        connection.commit()
    scene.wait_drained()
    scene.stop()
    assert scene.query("SELECT error FROM outbox_dead_letter") == []
    return ids


@pytest.fixture(params=["postgres", "roomy_mariadb", "sqlite"])
def any_roomy_store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def test_10_mb_from_every_store(
    make_scene: MakeScene, any_roomy_store: str, rabbitmq_server: RabbitMQServer, body: bytes
) -> None:
    scene = make_scene(store=any_roomy_store, transport=rabbitmq_server.url())
    ids = deliver(scene, body)
    taken = take_all(rabbitmq_server.url(), scene.event_type)
    assert [one.properties.message_id for one in taken] == ids
    assert [one.body for one in taken] == [b"before", body, b"after"]


def test_10_mb_to_nats(make_scene: MakeScene, postgres_url: str, body: bytes) -> None:
    with available(lambda: NatsServer(lines=["max_payload: 16MB"])) as server:
        scene = make_scene(store=postgres_url, transport=server.url())
        ids = deliver(scene, body)
        found = asyncio.run(stored(server.url(), scene.event_type))
    assert [one.event_id for one in found] == ids
    assert [one.body for one in found] == [b"before", body, b"after"]


def test_10_mb_to_redis(make_scene: MakeScene, postgres_url: str, body: bytes) -> None:
    with available(lambda: RedisServer(settings={"proto-max-bulk-len": "512mb"})) as server:
        scene = make_scene(store=postgres_url, transport=server.url())
        ids = deliver(scene, body)
        found = entries(server, scene.event_type)
    assert [one.text("id") for one in found] == ids
    assert [one.body for one in found] == [b"before", body, b"after"]


COMPRESSED = """
[transports.kafka]
url = "{url}"
client = {{ "compression.type" = "zstd" }}
"""


def test_10_mb_to_kafka(make_scene: MakeScene, postgres_url: str, kafka_server: KafkaServer, tmp_path: Path) -> None:
    """The mock cluster keeps the last 5 MB of a partition: the client compresses the payload to less."""
    settings = tmp_path / "kafka.toml"
    settings.write_text(COMPRESSED.format(url=kafka_server.url()))
    scene = make_scene(store=postgres_url, CONFIG=str(settings))
    kafka_server.create_topic(scene.event_type)
    body = random.randbytes(TEN_MB // 10) * 10
    deliver_to_kafka(scene, kafka_server, body)


def test_4_mb_to_kafka(make_scene: MakeScene, postgres_url: str, kafka_server: KafkaServer) -> None:
    scene = make_scene(store=postgres_url, transport=kafka_server.url())
    kafka_server.create_topic(scene.event_type)
    deliver_to_kafka(scene, kafka_server, random.randbytes(KEPT_BY_THE_MOCK))


def deliver_to_kafka(scene: Scene, server: KafkaServer, body: bytes) -> None:
    ids = deliver(scene, body)
    found = topics.read_all(server.bootstrap, scene.event_type, **{"fetch.message.max.bytes": 2 * TEN_MB})
    assert topics.ids(found) == ids
    assert [one.value() for one in found] == [b"before", body, b"after"]


WEBHOOK = """
[transports.hook]
url = "{url}"
max_body = "16 MiB"
allow_networks = ["127.0.0.0/8"]
"""


def test_10_mb_to_a_webhook(make_scene: MakeScene, postgres_url: str, tmp_path: Path, body: bytes) -> None:
    settings = tmp_path / "hook.toml"
    with closing(WebhookReceiver()) as receiver:
        settings.write_text(WEBHOOK.format(url=receiver.url()))
        scene = make_scene(store=postgres_url, CONFIG=str(settings))
        ids = deliver(scene, body)
    assert receiver.received == list(zip(ids, [b"before", body, b"after"], strict=True))


def test_10_mb_to_handlers_in_the_process_of_the_relay(
    make_scene: MakeScene, any_roomy_store: str, tmp_path: Path, body: bytes
) -> None:
    scene = make_scene(store=any_roomy_store, transport="handlers:tests.extremes.handling:keeping")
    ids = deliver(scene, body)
    assert (tmp_path / handling.ARRIVALS).read_text().split() == ids
    assert [(tmp_path / f"{one}.payload").read_bytes() for one in ids] == [b"before", body, b"after"]


@pytest.mark.parametrize("limit", ["1 MiB", LARGEST])
def test_200_mb_are_refused_at_record(any_store: str, limit: str) -> None:
    outbox = Outbox(max_payload=limit)
    with connected(any_store) as connection, pytest.raises(RecordError, match="200000000 bytes and max_payload"):
        outbox.record(connection, Event("large", bytes(TWO_HUNDRED_MB), content_type="application/x-bytes"))
    with pytest.raises(ConfigurationError, match="from 1 byte to 64 MiB"):
        Outbox(max_payload="200 MiB")


PAYLOADS = {
    "postgres": "convert_to(repeat('x', {}), 'UTF8')",
    "roomy_mariadb": "repeat('x', {})",
    "sqlite": "zeroblob({})",
}
LARGE = "INSERT INTO outbox_message (event_type, payload) VALUES ('large', {})"


@pytest.mark.parametrize(
    ("database", "limit"),
    [(name, limit) for name in ("postgres", "sqlite") for limit in ("1 MiB", LARGEST)] + [("roomy_mariadb", LARGEST)],
)
def test_200_mb_of_plain_sql_are_refused_by_the_table(
    request: pytest.FixtureRequest, database: str, limit: str
) -> None:
    """The limit of MariaDB is always 64 MiB, as docs/reference/mariadb.md says."""
    url = request.getfixturevalue(f"{database}_url")
    raise_limit(url, limit)
    refused = (psycopg.errors.CheckViolation, sqlite3.IntegrityError, pymysql.err.OperationalError)
    largest = payload_limit(limit)
    with connected(url) as connection, closing(connection.cursor()) as cursor:
        for size in (TWO_HUNDRED_MB, largest + 1):
            with pytest.raises(refused, match=r"max_payload|message_payload_ck"):
                cursor.execute(LARGE.format(PAYLOADS[database].format(size)))
            connection.rollback()
        cursor.execute(LARGE.format(PAYLOADS[database].format(largest)))
        connection.commit()
        cursor.execute("SELECT length(payload) FROM outbox_message")
        assert list(cursor.fetchall()) == [(largest,)]


def test_200_mb_of_plain_sql_are_refused_by_the_packet_limit_of_mariadb(mariadb_url: str) -> None:
    """With its default, before they reach the table."""
    with (
        connected(mariadb_url) as connection,
        closing(connection.cursor()) as cursor,
        pytest.raises(pymysql.err.OperationalError, match=r"max_allowed_packet|Lost connection|gone away"),
    ):
        cursor.execute(
            "INSERT INTO outbox_message (event_type, payload) VALUES ('large', %s)", (bytes(TWO_HUNDRED_MB),)
        )
