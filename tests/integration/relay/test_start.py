"""`pillarbox relay` started before its database or broker: it logs, waits, and then starts working."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pika.exceptions
import psycopg
import pytest

from pillarbox import Event, Outbox
from pillarbox.testing.waiting import eventually
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.telemetry.processes import Pages, relay
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

TOPOLOGY = """
[transports.rabbit]
url = "{url}"

[[transports.rabbit.queues]]
name = "{queue}"
type = "{kind}"

[destinations.work]
transport = "rabbit"
routing_key = "{queue}"

[[routes]]
to = ["work"]
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a store."""
    assert fresh_pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    return tmp_path


@pytest.fixture
def queue(rabbitmq_server: RabbitMQServer) -> Iterator[str]:
    """The name of a queue that is deleted at the end."""
    name = f"start-{uuid4().hex}"
    yield name
    with channel(rabbitmq_server.url()) as broker:
        broker.queue_delete(name)


def depth(url: str, queue: str) -> int | None:
    """The number of messages; None if the queue does not exist."""
    with channel(url) as broker:
        try:
            return int(broker.queue_declare(queue, passive=True).method.message_count)
        except pika.exceptions.ChannelClosedByBroker:
            return None


def configure(folder: Path, *, url: str, queue: str, kind: str = "quorum") -> None:
    (folder / "pillarbox.toml").write_text(TOPOLOGY.format(url=url, queue=queue, kind=kind))


def record_one(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, Event("order.placed", {"id": 1}))


def refused(folder: Path, **variables: str) -> str:
    """The output of `pillarbox relay --fail-fast`, which must exit with 1."""
    done = fresh_pillarbox("relay", "--fail-fast", cwd=folder, **variables)
    assert done.returncode == 1, done.stderr
    return str(done.stderr)


def said(pages: Pages, words: str) -> None:
    wait_until(lambda: words in pages.log_text(), bound=60, what=f"it says {words!r}: {pages.log_text()[-2000:]}")


def test_the_relay_waits_for_its_database(tmp_path: Path) -> None:
    with available(lambda: PostgresServer(durable=False)) as database:
        database.create_database("shop")
        url = database.url("shop")
        assert fresh_pillarbox("schema", "apply", cwd=tmp_path, PILLARBOX_STORE=url).returncode == 0
        database.stop()
        ways = {"PILLARBOX_STORE": url, "PILLARBOX_TRANSPORT": "stdout://"}
        assert "Connect call failed" in refused(tmp_path, **ways)
        with relay(tmp_path, **ways) as pages:
            said(pages, "store failed")
            answer = pages.get("/readyz")
            assert (answer.status_code, answer.json()["status"]) == (503, "DOWN")
            assert pages.get("/livez").status_code == 200
            database.start()
            with psycopg.connect(url) as connection:
                Outbox().record(connection, Event("order.placed", {"id": 1}))
            said(pages, "store reachable again")
            said(pages, "delivered event")
            wait_until(lambda: pages.get("/readyz").status_code == 200, bound=60, what="it is ready")
            assert pages.stop() == 0


def test_a_rejected_password_is_logged_and_retried(postgres_url: str, tmp_path: Path) -> None:
    url = f"postgresql://unknown:canary@{postgres_url.rpartition('@')[2]}"
    ways = {"PILLARBOX_STORE": url, "PILLARBOX_TRANSPORT": "stdout://"}
    assert "unknown" in refused(tmp_path, **ways)
    with relay(tmp_path, **ways) as pages:
        wait_until(lambda: pages.log_text().count("store failed") >= 3, bound=60, what="it retries")
        assert "unknown" in pages.log_text()
        assert "canary" not in pages.log_text()
        assert pages.stop() == 0


async def test_the_relay_leaves_a_read_only_replica_for_the_primary(postgres_url: str, tmp_path: Path) -> None:
    """Like after a failover, when the address led to a replica first and its connections stay open."""
    address, _, name = postgres_url.rpartition("/")
    primary = int(address.rpartition(":")[2])
    with available(PostgresServer) as replica:
        replica.create_database(name)
        applied = await asyncio.to_thread(
            fresh_pillarbox, "schema", "apply", cwd=tmp_path, PILLARBOX_STORE=replica.url(name)
        )
        assert applied.returncode == 0, applied.stderr
        replica.stop()
        (replica.data / "standby.signal").touch()
        replica.start()
        async with Proxy(int(replica.url().rpartition(":")[2].partition("/")[0])) as proxy:
            url = postgres_url.replace(f":{primary}/", f":{proxy.port}/")
            with relay(tmp_path, PILLARBOX_STORE=url, PILLARBOX_TRANSPORT="stdout://") as pages:
                await asyncio.to_thread(said, pages, "read-only transaction")
                proxy.forward_to(primary)
                await asyncio.to_thread(said, pages, "relay started")
                with psycopg.connect(postgres_url) as connection:
                    Outbox().record(connection, Event("order.placed", {"id": 1}))
                await asyncio.to_thread(said, pages, "delivered event")


def test_missing_tables_are_an_error_at_the_start(tmp_path: Path) -> None:
    done = fresh_pillarbox("relay", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (done.returncode, "pillarbox schema apply" in done.stderr) == (1, True)


async def test_the_relay_waits_for_its_broker_and_declares_the_topology(
    shop: Path, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    direct = rabbitmq_server.url()
    port = int(direct.rpartition(":")[2].partition("/")[0])
    async with Proxy(port) as proxy:
        await proxy.cut()
        configure(shop, url=direct.replace(f":{port}/", f":{proxy.port}/"), queue=queue)
        assert "cannot connect to RabbitMQ" in await asyncio.to_thread(refused, shop)
        with relay(shop) as pages:
            await asyncio.to_thread(said, pages, "transport unavailable")
            answer = await asyncio.to_thread(pages.get, "/readyz")
            assert "cannot connect" in answer.json()["waiting_for"]["rabbit"]
            assert depth(direct, queue) is None
            await proxy.heal()
            await asyncio.to_thread(said, pages, "transport reconnected")
            assert depth(direct, queue) == 0, "declared without an event"
            record_one(shop)

            async def arrived() -> bool:
                return await asyncio.to_thread(depth, direct, queue) == 1

            await eventually(arrived, within=60)
            assert "waiting_for" not in (await asyncio.to_thread(pages.get, "/readyz")).json()
            assert await asyncio.to_thread(pages.stop) == 0


def test_a_lost_topology_is_declared_again_on_reconnect(
    shop: Path, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    configure(shop, url=rabbitmq_server.url(), queue=queue)
    with relay(shop) as pages:
        said(pages, "transport connected")
        with channel(rabbitmq_server.url()) as broker:
            broker.queue_delete(queue)
        record_one(shop)
        wait_until(lambda: depth(rabbitmq_server.url(), queue) == 1, bound=60, what="the event is in a new queue")


def test_a_queue_that_would_lose_events_is_an_error_until_it_is_removed(
    shop: Path, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    configure(shop, url=rabbitmq_server.url(), queue=queue)
    with channel(rabbitmq_server.url()) as broker:
        broker.queue_declare(queue, durable=False)
    assert "is not what the configuration says" in refused(shop)
    with relay(shop) as pages:
        said(pages, "is not what the configuration says")
        assert queue in pages.log_text()
        record_one(shop)
        with channel(rabbitmq_server.url()) as broker:
            broker.queue_delete(queue)
        wait_until(lambda: depth(rabbitmq_server.url(), queue) == 1, bound=60, what="the event arrives")


def test_a_queue_of_another_type_is_used_and_named_in_the_log(
    shop: Path, rabbitmq_server: RabbitMQServer, queue: str
) -> None:
    configure(shop, url=rabbitmq_server.url(), queue=queue)
    with channel(rabbitmq_server.url()) as broker:
        broker.queue_declare(queue, durable=True)  # a classic one
    with relay(shop) as pages:
        record_one(shop)
        wait_until(lambda: depth(rabbitmq_server.url(), queue) == 1, bound=60, what="the event arrives")
        said(pages, f"queue '{queue}' at ")
        assert pages.log_text().count("is used as it is") == 1


def test_the_relay_waits_for_an_unknown_host(shop: Path) -> None:
    nowhere = {"PILLARBOX_TRANSPORT": "amqp://guest:guest@nowhere.invalid:5672/"}
    assert "nowhere.invalid" in refused(shop, **nowhere)
    with relay(shop, **nowhere) as pages:
        wait_until(lambda: pages.log_text().count("transport unavailable") >= 2, bound=60, what="it retries")
        assert pages.stop() == 0
    store = {"PILLARBOX_STORE": "postgresql://app@nowhere.invalid/shop", "PILLARBOX_TRANSPORT": "stdout://"}
    assert "nowhere.invalid" in refused(shop, **store)


def test_a_consumer_waits_for_its_broker_unless_fail_fast_is_set(tmp_path: Path) -> None:
    (tmp_path / "billing.py").write_text(
        f"""
import sqlite3
from contextlib import closing, contextmanager
from pillarbox import Consumer
from pillarbox.transports.rabbitmq import RabbitMQSource


@contextmanager
def transaction():
    with closing(sqlite3.connect("shop.db")) as connection, connection:
        yield connection


consumer = Consumer(
    RabbitMQSource("amqp://guest:guest@127.0.0.1:{free_port()}/", queue="q"), name="billing", transaction=transaction
)


@consumer.on("order.placed")
def bill(transaction, event): ...
"""
    )
    done = fresh_pillarbox("consume", "billing:consumer", "--fail-fast", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "cannot connect to RabbitMQ" in done.stderr
