"""Topology from configuration: declared, declared again, and what exists already is used with a warning or refused."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest
from pika.exceptions import ChannelClosedByBroker

from pillarbox.core.errors import ConfigurationError, RejectedError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Binding, DeadLetterTarget, Exchange, Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.plugin import RabbitMQPlugin
from pillarbox.transports.rabbitmq.topology import QueueType
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import Taken, channel, take_all
from tests.integration.rabbitmq.proxy import Proxy

Batch = Callable[..., list[Outgoing]]
NewName = Callable[[], str]


@pytest.mark.parametrize("kind", ["quorum", "classic"])
async def test_a_message_that_a_consumer_rejects_is_dead_lettered(
    make: MakeTransport, url: str, new_name: NewName, kind: QueueType
) -> None:
    exchange, dlx, queue, dlq = new_name(), new_name(), new_name(), new_name()
    document = Queue(
        name=queue,
        type=kind,
        bindings=[Binding(exchange=exchange, routing_key="document.*")],
        max_length=10_000,
        message_ttl="7 days",
        dead_letter=DeadLetterTarget(exchange=dlx, queue=dlq),
    )
    transport = make(exchanges=[Exchange(name=exchange)], queues=[document])
    to = RabbitMQTransport.to(exchange=exchange, routing_key="document.uploaded")
    assert await transport.send([outgoing("evt-001", to)]) == [None]
    with channel(url) as broker:
        method, _, _ = broker.basic_get(queue)
        assert method is not None
        assert method.delivery_tag is not None
        broker.basic_reject(method.delivery_tag, requeue=False)
    [dead] = await eventually(lambda: taken_from(url, dlq))
    assert dead.properties.message_id == "evt-001"


async def taken_from(url: str, queue: str) -> list[Taken]:
    return take_all(url, queue)


async def test_an_expired_message_is_dead_lettered(make: MakeTransport, url: str, new_name: NewName) -> None:
    queue, dlx, dlq = new_name(), new_name(), new_name()
    short = Queue(name=queue, message_ttl="1ms", dead_letter=DeadLetterTarget(exchange=dlx, queue=dlq))
    assert await make(queues=[short]).send([outgoing("evt-001", RabbitMQTransport.to(routing_key=queue))]) == [None]
    [dead] = await eventually(lambda: taken_from(url, dlq))
    assert dead.properties.message_id == "evt-001"


async def test_the_broker_accepts_every_setting(make: MakeTransport, new_name: NewName) -> None:
    dead = DeadLetterTarget(exchange=new_name(), queue=new_name())
    queues = [
        Queue(name=new_name(), max_length=9, overflow="drop-head", message_ttl="1h", dead_letter=dead),
        Queue(
            name=new_name(), max_length=9, arguments={"x-single-active-consumer": True, "x-max-length-bytes": 100_000}
        ),
        Queue(name=new_name(), delivery_limit=5, dead_letter=DeadLetterTarget(exchange="", queue=new_name())),
        Queue(name=new_name(), overflow="reject-publish", arguments={"x-dead-letter-strategy": "at-least-once"}),
        Queue(name=new_name(), type="classic", max_length=9, overflow="reject-publish-dlx", dead_letter=dead),
        Queue(name=new_name(), type="classic", overflow="drop-head", arguments={"x-max-priority": 3}),
    ]
    exchanges = [Exchange(name=new_name(), type=kind) for kind in ("direct", "fanout", "headers", "topic")]
    transport = make(exchanges=[*exchanges, Exchange(name=new_name(), durable=False)], queues=queues)
    await transport.declare_topology()
    await transport.declare_topology()


async def test_an_event_without_a_route_waits_in_a_durable_quorum_queue_of_that_name(
    make: MakeTransport, url: str, queue: str
) -> None:
    transport = make()
    [address] = transport.defaults(queue).values()
    assert await transport.send([outgoing("evt-001", address, event_type=queue)]) == [None]
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    assert len(take_all(url, queue)) == 1


async def test_several_batches_at_once_for_a_new_queue_are_all_accepted(make: MakeTransport, new_name: NewName) -> None:
    for _ in range(10):
        transport, to = make(), RabbitMQTransport.to(routing_key=new_name())
        results = await asyncio.gather(*(transport.send([outgoing(f"e{n}", to)]) for n in range(6)))
        assert results == [[None]] * 6


async def test_without_declare_nothing_is_declared(
    make: MakeTransport, queue: str, exchange: str, batch: Batch
) -> None:
    bound = Queue(name=queue, bindings=[Binding(exchange=exchange)])
    transport = make(declare=False, exchanges=[Exchange(name=exchange)], queues=[bound])
    [result] = await transport.send(batch(1))
    assert isinstance(result, RejectedError)
    [result] = await transport.send([outgoing("e2", RabbitMQTransport.to(exchange=exchange))])
    assert isinstance(result, UnavailableError)
    await transport.declare_topology()
    assert await transport.send(batch(1)) == [None]


@pytest.mark.parametrize("configured", [True, False])
async def test_a_queue_deleted_meanwhile_is_declared_again(
    make: MakeTransport, url: str, queue: str, batch: Batch, configured: bool
) -> None:
    transport = make(queues=[Queue(name=queue)] if configured else [])
    assert await transport.send(batch(1)) == [None]
    with channel(url) as broker:
        broker.queue_delete(queue)
    [result] = await transport.send(batch(1))
    assert isinstance(result, RejectedError)
    assert await transport.send(batch(1)) == [None]


async def test_a_new_connection_declares_everything_again(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, exchange: str
) -> None:
    bound = Queue(name=queue, bindings=[Binding(exchange=exchange, routing_key="#")])
    transport = make(proxied, exchanges=[Exchange(name=exchange)], queues=[bound])
    await transport.ping()
    with channel(url) as broker:
        broker.queue_delete(queue)
        broker.exchange_delete(exchange)
    await proxy.reset()

    async def accepted() -> bool:
        [result] = await transport.send([outgoing("e1", RabbitMQTransport.to(exchange=exchange))])
        assert result is None or isinstance(result, UnavailableError)
        return result is None

    await eventually(accepted)
    assert len(take_all(url, queue)) == 1


@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize(
    "arguments", [{}, {"x-queue-type": "classic"}, {"x-queue-type": "quorum", "x-max-length": 7}, {"x-expires": 60_000}]
)
async def test_a_queue_that_exists_with_other_arguments_is_used_with_one_warning(
    make: MakeTransport,
    url: str,
    queue: str,
    batch: Batch,
    configured: bool,
    arguments: dict[str, str | int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True, arguments=arguments)
    transport = make(queues=[Queue(name=queue, max_length=9)] if configured else [])
    await transport.declare_topology()
    await transport.ping()
    assert await transport.send(batch(2)) == [None, None]
    await transport.declare_topology()
    assert len(take_all(url, queue)) == 2
    [warning] = [record for record in caplog.records if record.name == "pillarbox.rabbitmq"]
    assert warning.levelname == "WARNING"
    assert f"queue '{queue}'" in warning.getMessage()
    assert "inequivalent arg" in warning.getMessage()


async def test_a_new_connection_warns_of_no_queue_again(
    make: MakeTransport,
    url: str,
    proxy: Proxy,
    proxied: str,
    queue: str,
    batch: Batch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
    transport = make(proxied)
    assert await transport.send(batch(1)) == [None]
    await proxy.reset()

    async def accepted() -> bool:
        return await transport.send(batch(1)) == [None]

    await eventually(accepted)
    assert len([record for record in caplog.records if record.name == "pillarbox.rabbitmq"]) == 1


async def test_a_queue_with_other_arguments_is_bound_as_configured(
    make: MakeTransport, url: str, queue: str, exchange: str
) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
    bound = Queue(name=queue, bindings=[Binding(exchange=exchange, routing_key="order.*")])
    transport = make(exchanges=[Exchange(name=exchange)], queues=[bound])
    to = RabbitMQTransport.to(exchange=exchange, routing_key="order.placed")
    assert await transport.send([outgoing("evt-001", to)]) == [None]
    assert len(take_all(url, queue)) == 1


@pytest.mark.parametrize("lost", ["not durable", "auto-delete"])
async def test_every_method_reports_a_queue_that_would_lose_events_until_it_is_removed(
    make: MakeTransport, url: str, queue: str, batch: Batch, lost: str
) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=lost == "auto-delete", auto_delete=lost == "auto-delete")
    transport = make(queues=[Queue(name=queue)])
    difference = f"queue '{queue}'.*(durable|auto_delete).*received '(true|false)' but current is '(true|false)'"
    with pytest.raises(ConfigurationError, match=difference):
        await transport.declare_topology()
    with pytest.raises(UnavailableError, match=difference):
        await transport.ping()
    results = await transport.send(batch(2))
    assert [type(result) for result in results] == [UnavailableError, UnavailableError]
    assert str(results[0]).startswith(f"queue '{queue}'")
    with channel(url) as broker:
        broker.queue_delete(queue)
    assert await transport.send(batch(2)) == [None, None]


async def test_an_exchange_of_another_type_is_a_mismatch(make: MakeTransport, url: str, exchange: str) -> None:
    with channel(url) as broker:
        broker.exchange_declare(exchange, "direct", durable=True)
    with pytest.raises(ConfigurationError, match=f"exchange '{exchange}'.*'topic' but current is 'direct'"):
        await make(exchanges=[Exchange(name=exchange)]).declare_topology()


async def test_an_unconfigured_queue_that_is_not_durable_fails_only_its_own_messages(
    make: MakeTransport, url: str, queue: str, new_name: NewName
) -> None:
    other = new_name()
    with channel(url) as broker:
        broker.queue_declare(queue, durable=False)
    names = [queue, other, queue, other]
    results = await make().send(
        [outgoing(f"e{n}", RabbitMQTransport.to(routing_key=name)) for n, name in enumerate(names)]
    )
    assert [type(result) for result in results] == [UnavailableError, type(None)] * 2
    assert "durable" in str(results[0])


async def test_a_binding_to_a_missing_exchange_names_both(make: MakeTransport, queue: str, exchange: str) -> None:
    bound = Queue(name=queue, bindings=[Binding(exchange=exchange, routing_key="order.*")])
    with pytest.raises(UnavailableError, match=f"queue '{queue}' to exchange '{exchange}' by 'order.*'.*NOT_FOUND"):
        await make(queues=[bound]).declare_topology()


async def test_a_queue_is_deleted_with_its_messages_and_a_missing_one_is_no_error(
    make: MakeTransport, url: str, queue: str, batch: Batch
) -> None:
    transport = make()
    assert await transport.send(batch(3)) == [None] * 3
    await transport.delete_queue(queue)
    await transport.delete_queue(queue)
    with channel(url) as broker, pytest.raises(ChannelClosedByBroker, match="no queue"):
        broker.queue_declare(queue, passive=True)


async def test_a_scratch_queue_is_dropped_over_its_own_transport_and_without_a_broker_it_expires(
    proxy: Proxy, proxied: str, url: str, queue: str
) -> None:
    options = {"window": 10, "send_timeout": "2s", "heartbeat": "30s", "connect_timeout": "2s"}
    scratch = RabbitMQPlugin().scratch(proxied, options, queue)
    async with aclosing(scratch.transport):
        await scratch.transport.ping()
        with channel(url) as broker:
            broker.queue_declare(queue, passive=True)
        await proxy.cut()
        await scratch.drop()
        await proxy.heal()
        await scratch.drop()
    with channel(url) as broker, pytest.raises(ChannelClosedByBroker, match="no queue"):
        broker.queue_declare(queue, passive=True)
