"""Connections that fail, stall or are lost; cancelling and closing meanwhile; the password is never shown."""

import asyncio
import logging
import traceback
from collections.abc import Callable

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer

Batch = Callable[..., list[Outgoing]]
CANARY = "canary-password"


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("amqp://guest:{canary}@127.0.0.1:{closed}/", "Connection refused"),
        ("amqp://guest:{canary}@127.0.0.1:{port}/", "ACCESS_REFUSED"),
        ("amqp://{canary}:guest@127.0.0.1:{port}/", "ACCESS_REFUSED"),
        ("amqp://guest:guest@127.0.0.1:{port}/nowhere", "vhost nowhere not found"),
        ("amqp://guest:{canary}@nowhere.invalid/", "nowhere.invalid:5672"),
        ("amqps://guest:{canary}@localhost:{port}/", "SSL"),
    ],
)
async def test_connect_errors_name_endpoint_and_reason_and_never_the_password(
    make: MakeTransport,
    rabbitmq_server: RabbitMQServer,
    caplog: pytest.LogCaptureFixture,
    batch: Batch,
    address: str,
    named: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    transport = make(address.format(canary=CANARY, port=rabbitmq_server.port, closed=free_port()))
    [result] = await transport.send(batch(1))
    assert isinstance(result, UnavailableError)
    assert named in str(result)
    assert "cannot connect to RabbitMQ at" in str(result)
    with pytest.raises(UnavailableError) as raised:
        await transport.ping()
    shown = [repr(transport), repr(result), *traceback.format_exception(raised.value), caplog.text]
    assert CANARY not in "\n".join(shown)


async def test_a_broker_that_does_not_confirm_in_time_is_unavailable_and_its_connection_dropped(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, batch: Batch
) -> None:
    transport = make(proxied, send_timeout="300ms")
    await transport.send(batch(1, "first"))
    proxy.silence()
    results = await transport.send(batch(3))
    assert {type(result) for result in results} == {UnavailableError}
    assert "within 0.3 s" in str(results[0])
    # The late confirms pass now, and must not count.
    await proxy.heal()
    assert await transport.send(batch(3, "again")) == [None] * 3
    assert proxy.accepted == 2
    arrived = [taken.properties.message_id for taken in take_all(url, queue)]
    assert arrived == ["first0", "e0", "e1", "e2", "again0", "again1", "again2"]


async def test_a_broker_that_does_not_complete_the_handshake_in_time_is_unavailable(
    make: MakeTransport, proxy: Proxy, proxied: str, batch: Batch, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.silence()
    transport = make(proxied, connect_timeout="300ms")
    [result] = await transport.send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "within 0.3 s" in str(result)
    await proxy.heal()
    assert await transport.send(batch(1)) == [None]
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_lost_connection_fails_unconfirmed_messages_and_is_replaced(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, batch: Batch
) -> None:
    transport = make(proxied)
    await transport.send(batch(1, "first"))
    sending = await unconfirmed(transport, proxy, url, queue, batch)
    await proxy.reset()
    results = await sending
    assert {type(result) for result in results} == {UnavailableError}
    assert "lost the connection" in str(results[0])
    assert await transport.send(batch(5)) == [None] * 5


async def test_a_cancelled_send_affects_no_other_and_leaves_nothing_open(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, batch: Batch
) -> None:
    transport = make(proxied)
    # Two at once, because a third channel could not be opened in silence.
    await asyncio.gather(transport.send(batch(1, "first")), transport.send(batch(1, "second")))
    target = await unconfirmed(transport, proxy, url, queue, batch)
    concurrent = asyncio.create_task(transport.send(batch(5, "concurrent")))
    await eventually(lambda: in_queue(url, queue, 12))
    target.cancel()
    with pytest.raises(asyncio.CancelledError):
        await target
    await proxy.heal()
    assert await concurrent == [None] * 5
    assert await transport.send(batch(5, "after")) == [None] * 5
    assert proxy.accepted == 1


async def test_cancelled_while_connecting_it_drops_the_connection(
    make: MakeTransport, proxy: Proxy, proxied: str, batch: Batch
) -> None:
    proxy.silence()
    transport = make(proxied)
    target = asyncio.create_task(transport.send(batch(1)))
    await eventually(lambda: has_connections(proxy, 1))
    target.cancel()
    with pytest.raises(asyncio.CancelledError):
        await target
    await proxy.heal()
    await eventually(lambda: has_connections(proxy, 0))
    assert await transport.send(batch(1)) == [None]
    assert proxy.connections == 1


async def test_closed_while_connecting_it_fails_the_send_and_drops_the_connection(
    make: MakeTransport, proxy: Proxy, proxied: str, batch: Batch
) -> None:
    proxy.silence()
    transport = make(proxied)
    sending = [asyncio.create_task(transport.send(batch(1))) for _ in range(3)]
    await eventually(lambda: has_connections(proxy, 1))
    await transport.aclose()
    for results in await asyncio.gather(*sending):
        assert [type(result) for result in results] == [UnavailableError]
        assert "is closed" in str(results[0])
    await proxy.heal()
    await eventually(lambda: has_connections(proxy, 0))


async def test_closed_while_the_broker_is_silent_it_fails_the_send_and_cuts_the_connection(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, batch: Batch
) -> None:
    transport = make(proxied)
    await transport.send(batch(1, "first"))
    sending = await unconfirmed(transport, proxy, url, queue, batch)
    await transport.aclose()
    assert {str(result) for result in await sending} == {f"the transport to RabbitMQ at {place(proxy)} is closed"}
    with pytest.raises(UnavailableError, match="is closed"):
        await transport.send(batch(1))
    with pytest.raises(UnavailableError, match="is closed"):
        await transport.ping()


async def test_ping_notices_a_broker_that_fell_silent(make: MakeTransport, proxy: Proxy, proxied: str) -> None:
    transport = make(proxied, send_timeout="300ms")
    await transport.ping()
    proxy.silence()
    with pytest.raises(UnavailableError, match=r"within 0\.3 s"):
        await transport.ping()


def place(proxy: Proxy) -> str:
    return f"127.0.0.1:{proxy.port}, virtual host '/'"


async def unconfirmed(
    transport: RabbitMQTransport, proxy: Proxy, url: str, queue: str, batch: Batch
) -> "asyncio.Task[list[SendResult]]":
    """A send whose five messages are in the queue, and whose confirms are held back."""
    proxy.silence()
    before = count(url, queue)
    sending = asyncio.create_task(transport.send(batch(5, "unconfirmed")))
    await eventually(lambda: in_queue(url, queue, before + 5))
    return sending


async def in_queue(url: str, queue: str, number: int) -> bool:
    return count(url, queue) == number


async def has_connections(proxy: Proxy, number: int) -> bool:
    return proxy.connections == number


def count(url: str, queue: str) -> int:
    with channel(url) as broker:
        declared = broker.queue_declare(queue, passive=True)
    return int(declared.method.message_count or 0)
