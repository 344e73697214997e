"""Several hosts in a URL: relays follow the primary of PostgreSQL and find a node of RabbitMQ that responds."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pillarbox import Event, Outbox, UnavailableError
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.fetch import Ready
from pillarbox.core.message import Message
from pillarbox.core.transport import Outgoing
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQSource, RabbitMQTransport
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.telemetry.processes import Pages, relay
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until


@contextmanager
def replicated() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary with the outbox's tables, and a streaming replica."""
    with available(lambda: PostgresServer(durable=False)) as primary:
        primary.create_database("shop")
        replica = PostgresServer(durable=False)
        copy = (available(debian.PG_BASEBACKUP.path), "-D", str(replica.data), "-R", "-X", "stream", "-c", "fast")
        processes.run([*copy, "-d", primary.url()], folder=replica.folder)
        with replica:
            yield primary, replica


def both(*servers: PostgresServer) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://postgres@{hosts}/shop"


def record(server: PostgresServer, number: int) -> None:
    with psycopg.connect(server.url("shop")) as connection:
        Outbox().record(connection, Event("order.placed", {"number": number}))


def delivered(pages: Pages, count: int) -> None:
    wait_until(lambda: pages.log_text().count("delivered event") == count, bound=120, what=f"{count} deliveries")


def replayed(primary: PostgresServer, replica: PostgresServer) -> None:
    """Wait until the replica has everything that the primary has committed."""
    with psycopg.connect(primary.url()) as there, psycopg.connect(replica.url(), autocommit=True) as here:
        [reached] = there.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or (None,)
        query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        wait_until(lambda: here.execute(query, [reached]).fetchone() == (True,), bound=90, what="it is replicated")


def promote(replica: PostgresServer) -> None:
    with psycopg.connect(replica.url(), autocommit=True) as connection:
        assert connection.execute("SELECT pg_promote(true, 90)").fetchone() == (True,)


@pytest.mark.contrib
async def test_low_water_marks_end_with_their_server() -> None:
    ready, sequence = Ready(lanes=range(64)), "pg_get_serial_sequence('outbox_message', 'id')"
    with replicated() as (primary, replica):
        async with aclosing(PostgresStore(both(primary, replica))) as store:
            await store.schema.apply()
            for number in range(5):
                record(primary, number)
            with psycopg.connect(primary.url("shop")) as connection:
                connection.execute("DELETE FROM outbox_message")
            await store.messages.low_water_marks.search(ready.lanes)
            assert set(store.messages.low_water_marks._marks.values()) == {6}
            replayed(primary, replica)
            # A replica does not show the locks of its primary, so it cannot tell what is decided.
            async with aclosing(PostgresStore(replica.url("shop"))) as reader:
                await reader.messages.low_water_marks.search(ready.lanes)
                assert reader.messages.low_water_marks._marks == {}
            primary.kill()
            promote(replica)
            # As if the replica had not received the last commits: their sequences are drawn again.
            with psycopg.connect(replica.url("shop")) as connection:
                connection.execute(f"SELECT setval({sequence}, 1)")
            for number in range(10):
                record(replica, number)

            async def fetched() -> list[Message]:
                with suppress(StoreUnavailableError):
                    return await store.messages.fetch(ready)
                return []

            assert len(await eventually(fetched)) == 10


@pytest.mark.contrib
def test_a_relay_finds_the_primary_and_follows_a_promotion(tmp_path: Path) -> None:
    with replicated() as (primary, replica):
        url = both(replica, primary)
        assert fresh_pillarbox("schema", "apply", cwd=tmp_path, PILLARBOX_STORE=url).returncode == 0
        with relay(tmp_path, PILLARBOX_STORE=url, PILLARBOX_TRANSPORT="stdout://") as pages:
            record(primary, 1)
            delivered(pages, 1)
            replayed(primary, replica)
            primary.kill()
            promote(replica)
            record(replica, 2)
            delivered(pages, 2)
            wait_until(lambda: pages.get("/readyz").status_code == 200, bound=90, what="it is ready")
            assert pages.stop() == 0


@pytest.mark.contrib
def test_a_primary_that_became_a_replica_is_left_for_the_new_one(tmp_path: Path) -> None:
    """A switchover: both servers respond, and the connections to the old primary ended."""
    with replicated() as (primary, replica):
        url = both(primary, replica)
        assert fresh_pillarbox("schema", "apply", cwd=tmp_path, PILLARBOX_STORE=url).returncode == 0
        with relay(tmp_path, PILLARBOX_STORE=url, PILLARBOX_TRANSPORT="stdout://") as pages:
            record(primary, 1)
            delivered(pages, 1)
            replayed(primary, replica)
            primary.stop()
            promote(replica)
            (primary.data / "standby.signal").touch()
            primary.start()
            record(replica, 2)
            delivered(pages, 2)
            assert pages.stop() == 0


async def test_a_host_that_does_not_respond_does_not_use_up_the_time_for_the_others(postgres_url: str) -> None:
    server = postgres_url.rpartition("@")[2]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"postgresql://postgres@127.0.0.1:{mute.getsockname()[1]},{server}"
        async with aclosing(PostgresStore(url)) as store:
            assert (await store.schema.status()).version > 0


async def test_the_error_names_the_failure_of_every_host(postgres_url: str) -> None:
    server, _, name = postgres_url.rpartition("@")[2].partition("/")
    closed = free_port()
    url = f"postgresql://postgres:canary@127.0.0.1:{closed},{server}/{name}?target_session_attrs=standby"
    async with aclosing(PostgresStore(url)) as store:
        with pytest.raises(StoreUnavailableError) as failed:
            await store.schema.status()
    text = str(failed.value)
    assert f"127.0.0.1:{closed}: ConnectionRefusedError" in text
    assert f"{server}: TargetServerAttributeNotMatched" in text
    assert "canary" not in text


async def test_a_wrong_password_is_reported_as_such(postgres_url: str) -> None:
    server = postgres_url.rpartition("@")[2]
    url = f"postgresql://unknown-{free_port()}@{server.partition('/')[0]},127.0.0.1:{free_port()}/shop"
    async with aclosing(PostgresStore(url)) as store:
        with pytest.raises(StoreUnavailableError, match="unknown"):
            await store.schema.status()


@asynccontextmanager
async def to_nodes(*nodes: int, **options: Any) -> AsyncIterator[RabbitMQTransport]:
    hosts = ",".join(f"127.0.0.1:{port}" for port in nodes)
    transport = RabbitMQTransport(f"amqp://guest:guest@{hosts}/", **options)
    try:
        yield transport
    finally:
        await transport.aclose()


def message(number: int) -> list[Outgoing]:
    return [outgoing(f"e{number}", RabbitMQTransport.to(routing_key="failover.q"))]


async def test_a_node_that_is_down_is_passed_over(rabbitmq_server: RabbitMQServer) -> None:
    async with to_nodes(free_port(), rabbitmq_server.port) as transport:
        assert await transport.send(message(1)) == [None]


async def test_a_node_that_does_not_respond_is_passed_over(rabbitmq_server: RabbitMQServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        async with to_nodes(mute.getsockname()[1], rabbitmq_server.port, connect_timeout="4s") as transport:
            assert await transport.send(message(1)) == [None]


async def test_every_node_that_failed_is_named() -> None:
    ports = free_port(), free_port()
    async with to_nodes(*ports) as transport:
        [result] = await transport.send(message(1))
    assert isinstance(result, UnavailableError)
    assert all(f"127.0.0.1:{port}" in str(result) for port in ports)


async def test_transport_and_source_move_to_another_node_and_back() -> None:
    with available(RabbitMQServer) as first, available(RabbitMQServer) as second:
        hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
        source = RabbitMQSource(f"amqp://guest:guest@{hosts}/", queue="failover.q")

        async def received(event_id: str) -> bool:
            """Receive and acknowledge; what was acknowledged before the kill may come again."""
            with suppress(UnavailableError):
                delivery = await source.receive()
                await delivery.ack()
                return delivery.incoming.event_id == event_id
            return False

        async with to_nodes(first.port, second.port) as transport, aclosing(source):
            for number, stopped in enumerate((None, first, second)):
                if stopped is not None:
                    await asyncio.to_thread(stopped.kill)
                if stopped is second:
                    await asyncio.to_thread(first.start)
                await eventually(partial(_sent, transport, number), within=120)
                await eventually(partial(received, f"e{number}"), within=120)


async def _sent(transport: RabbitMQTransport, number: int) -> bool:
    return await transport.send(message(number)) == [None]
