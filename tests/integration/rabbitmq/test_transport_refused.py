"""The broker closes a channel over one message: the message is found, and its neighbours arrive."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from pillarbox.core.errors import NackedError, PermanentError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer

Batch = Callable[..., list[Outgoing]]

CC = {"CC": "the broker wants a list here and closes the channel"}


@pytest.fixture(scope="module")
def strict(victim: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """A broker that takes no message of more than 1000 bytes."""
    before = victim.evaluate("{ok, Size} = application:get_env(rabbit, max_message_size), Size")
    victim.evaluate("application:set_env(rabbit, max_message_size, 1000)")
    yield victim
    victim.evaluate(f"application:set_env(rabbit, max_message_size, {before})")


async def test_a_message_over_the_size_limit_fails_permanently_and_alone(
    make: MakeTransport, strict: RabbitMQServer, batch: Batch, queue: str
) -> None:
    sent = batch(50)
    sent[20] = sent[20]._replace(body=b"x" * 1001)
    results = await make(strict.url()).send(sent)
    failed = {place: result for place, result in enumerate(results) if result is not None}
    assert set(failed) == {20}
    assert isinstance(failed[20], PermanentError)
    assert "e20" in str(failed[20])
    assert "max size" in str(failed[20])
    # Messages before it were queued and unconfirmed, so they are sent again: at least once.
    arrived = {taken.properties.message_id for taken in take_all(strict.url(), queue)}
    assert arrived == {f"e{n}" for n in range(50) if n != 20}


async def test_several_rejected_messages_of_one_batch_are_all_found(
    make: MakeTransport, url: str, batch: Batch, queue: str
) -> None:
    sent = batch(30)
    for place in (0, 7, 8, 29):
        sent[place] = sent[place]._replace(headers=CC)
    results = await make().send(sent)
    assert [place for place, result in enumerate(results) if result is not None] == [0, 7, 8, 29]
    assert {type(results[place]) for place in (0, 7, 8, 29)} == {PermanentError}
    arrived = {taken.properties.message_id for taken in take_all(url, queue)}
    assert arrived == {f"e{n}" for n in range(30)} - {"e0", "e7", "e8", "e29"}


async def test_a_batch_concurrent_with_a_refused_message_has_no_duplicates(
    make: MakeTransport, url: str, batch: Batch, queue: str
) -> None:
    transport = make()
    good, bad = batch(30, "good"), batch(30, "bad")
    bad[10] = bad[10]._replace(headers=CC)
    await transport.send(batch(1, "first"))
    results, others = await asyncio.gather(transport.send(good), transport.send(bad))
    assert results == [None] * 30
    assert others.count(None) == 29
    arrived = [str(taken.properties.message_id) for taken in take_all(url, queue)]
    assert sorted(name for name in arrived if name.startswith("good")) == sorted(f"good{n}" for n in range(30))


async def test_a_missing_exchange_is_an_outage_of_that_destination_only(
    make: MakeTransport, url: str, batch: Batch, queue: str, exchange: str
) -> None:
    transport, nowhere = make(), RabbitMQTransport.to(exchange=exchange)
    sent = [one._replace(address=nowhere) if n % 2 else one for n, one in enumerate(batch(20))]
    results = await transport.send(sent)
    assert results[::2] == [None] * 10
    assert {type(result) for result in results[1::2]} == {UnavailableError}
    assert f"no exchange '{exchange}'" in str(results[1])
    assert len({taken.properties.message_id for taken in take_all(url, queue)}) == 10
    with channel(url) as broker:
        broker.exchange_declare(exchange, "fanout")
        broker.queue_bind(queue, exchange)
    assert await transport.send(sent) == [None] * 20


async def test_an_exchange_without_write_access_is_an_outage_of_that_destination_only(
    make: MakeTransport, url: str, batch: Batch, exchange: str
) -> None:
    with channel(url) as broker:
        broker.exchange_declare(exchange, "fanout", internal=True)
    sent = batch(9)
    sent[4] = sent[4]._replace(address=RabbitMQTransport.to(exchange=exchange))
    results = await make().send(sent)
    assert [place for place, result in enumerate(results) if result is not None] == [4]
    assert isinstance(results[4], UnavailableError)
    assert not isinstance(results[4], NackedError)
    assert "ACCESS_REFUSED" in str(results[4])


async def test_a_rejected_message_does_not_close_the_connection(
    make: MakeTransport, proxy: Proxy, proxied: str, batch: Batch
) -> None:
    transport = make(proxied)
    [culprit] = batch(1)
    for _ in range(3):
        [result] = await transport.send([culprit._replace(headers=CC)])
        assert isinstance(result, PermanentError)
    assert await transport.send(batch(5)) == [None] * 5
    assert proxy.accepted == 1


@pytest.mark.parametrize("templated", [True, False])
async def test_a_topic_without_write_access_fails_alone(
    make: MakeTransport, rabbitmq_server: RabbitMQServer, url: str, queue: str, exchange: str, templated: bool
) -> None:
    with channel(url) as broker:
        broker.exchange_declare(exchange, "topic")
        broker.queue_declare(queue, durable=True)
        broker.queue_bind(queue, exchange, "#")
    rabbitmq_server.add_user(queue, "secret")
    rabbitmq_server.ctl("set_permissions", queue, ".*", ".*", ".*")
    rabbitmq_server.ctl("set_topic_permissions", queue, exchange, "^open", ".*")
    try:
        transport = make(f"amqp://{queue}:secret@127.0.0.1:{rabbitmq_server.port}")
        types = ["open", "locked", "open", "locked", "open"]
        keys = ["{event_type}"] * 5 if templated else types
        sent = [
            outgoing(f"e{n}", RabbitMQTransport.to(exchange=exchange, routing_key=key), event_type=event_type)
            for n, (event_type, key) in enumerate(zip(types, keys, strict=True))
        ]
        results = await transport.send(sent)
    finally:
        rabbitmq_server.delete_user(queue)
    # A destination that has other keys, too, is available.
    error = NackedError if templated else UnavailableError
    assert [type(result) for result in results] == [type(None), error, type(None), error, type(None)]
    assert "access to topic 'locked'" in str(results[1])
    assert {taken.properties.message_id for taken in take_all(url, queue)} == {"e0", "e2", "e4"}


async def test_a_destination_whose_only_queue_cannot_be_declared_is_unavailable(
    make: MakeTransport, url: str, new_name: Callable[[], str]
) -> None:
    bad, good = new_name(), new_name()
    with channel(url) as broker:
        broker.queue_declare(bad)  # it would lose events: it is not durable
    transport = make()
    [refused, accepted] = await transport.send(
        [outgoing("a", RabbitMQTransport.to(routing_key=bad)), outgoing("b", RabbitMQTransport.to(routing_key=good))]
    )
    assert (type(refused), accepted) == (UnavailableError, None)
    [templated] = await transport.send([outgoing("a", RabbitMQTransport.to(), event_type=bad)])
    assert type(templated) is NackedError
