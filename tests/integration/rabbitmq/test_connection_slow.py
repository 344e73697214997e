"""A slow connection: a send does not time out and is sent once as long as it makes progress."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import asyncpg
import pytest

from pillarbox import Relay, RelayConfig
from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer

SLOW = 40_000.0
"""Bytes per second."""
SHORT = "1.5s"
"""In which the slow link carries a quarter of what is sent; longer than a busy machine pauses a process."""


@pytest.fixture
async def slow(rabbitmq_server: RabbitMQServer) -> AsyncIterator[Proxy]:
    """A slow connection to the broker."""
    async with Proxy(rabbitmq_server.port, rate=SLOW) as proxy:
        yield proxy


def heavy(queue: str, count: int, size: int) -> list[Outgoing]:
    return [outgoing(f"{n:03}", RabbitMQTransport.to(routing_key=queue), body=bytes(size)) for n in range(count)]


@pytest.mark.parametrize(("count", "size"), [(250, 1000), (1, 250_000)], ids=["many", "one"])
async def test_a_send_that_makes_progress_is_not_timed_out(
    make: MakeTransport, url: str, slow: Proxy, queue: str, count: int, size: int
) -> None:
    transport = make(f"amqp://127.0.0.1:{slow.port}", send_timeout=SHORT)
    results = await transport.send(heavy(queue, count, size))
    assert results == [None] * count
    assert slow.accepted == 1
    assert len(take_all(url, queue)) == count


async def test_a_send_without_progress_times_out(make: MakeTransport, proxy: Proxy, proxied: str, queue: str) -> None:
    transport = make(proxied, send_timeout=SHORT)
    await transport.send(heavy(queue, 1, 1))
    proxy.silence()
    [result] = await transport.send(heavy(queue, 1, 1000))
    assert isinstance(result, UnavailableError)
    assert "did not respond within 1.5 s" in str(result)


async def test_a_relay_sends_nothing_twice_over_a_slow_connection(
    make: MakeTransport, url: str, slow: Proxy, queue: str, postgres_url: str
) -> None:
    sql = await asyncpg.connect(postgres_url)
    await sql.execute(
        "INSERT INTO outbox_message (event_type, payload, ordering_key)"
        " SELECT $1, convert_to(repeat('x', 1000), 'UTF8'), 'key ' || g FROM generate_series(1, 200) g",
        queue,
    )
    await sql.close()
    transport = make(f"amqp://127.0.0.1:{slow.port}", send_timeout=SHORT)
    config = RelayConfig(send_timeout=SHORT, poll_interval="50ms")
    async with aclosing(PostgresStore(postgres_url)) as store:
        relay = Relay(store=store, transports={"rabbitmq": transport}, config=config)
        assert await relay.run_until_empty() == 0
    assert slow.accepted == 1
    assert len(take_all(url, queue)) == 200
