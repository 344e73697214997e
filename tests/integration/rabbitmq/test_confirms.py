"""Results of a batch: a full queue nacks, unroutable messages are returned, and each message has its own result."""

import asyncio
from collections.abc import Callable

import pytest

from pillarbox.core.errors import NackedError, PermanentError, RejectedError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Binding, Exchange, Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.topology import QueueType
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.rabbitmq.proxy import Proxy

Batch = Callable[..., list[Outgoing]]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_a_full_queue_nacks_and_keeps_exactly_what_was_accepted(
    make: MakeTransport, url: str, queue: str, batch: Batch, kind: QueueType
) -> None:
    transport = make(queues=[Queue(name=queue, type=kind, max_length=5)])
    results: dict[str, SendResult] = {}

    async def full() -> bool:
        sent = batch(20, f"{len(results)}-")
        results.update(zip([one.message.event_id for one in sent], await transport.send(sent), strict=True))
        return any(results.values())

    await eventually(full)
    accepted = {event_id for event_id, result in results.items() if result is None}
    assert {type(result) for result in results.values()} == {type(None), NackedError}
    assert {taken.properties.message_id for taken in take_all(url, queue)} == accepted

    async def takes_again() -> bool:
        return await transport.send(batch(1)) == [None]

    await eventually(takes_again)


async def test_an_unroutable_message_is_rejected_and_its_neighbours_are_not(
    make: MakeTransport, url: str, queue: str, exchange: str
) -> None:
    bound = Queue(name=queue, bindings=[Binding(exchange=exchange, routing_key="taken.#")])
    transport = make(exchanges=[Exchange(name=exchange)], queues=[bound])
    to = RabbitMQTransport.to(exchange=exchange)
    types = ["taken.a", "lost.a", "taken.b", "lost.b", "taken.c"] * 20
    sent = [outgoing(f"e{n}", to, event_type=event_type) for n, event_type in enumerate(types)]
    results = await transport.send(sent)
    expected = [RejectedError if event_type.startswith("lost") else type(None) for event_type in types]
    assert [type(result) for result in results] == expected
    assert f"exchange '{exchange}', routing key 'lost.a'" in str(results[1])
    assert len(take_all(url, queue)) == 60


async def test_two_copies_of_an_event_in_one_batch_have_a_result_each(
    make: MakeTransport, queue: str, batch: Batch
) -> None:
    [good], bad = batch(1, "same"), RabbitMQTransport.to(exchange="amq.direct", routing_key=f"{queue}-unbound")
    results = await make().send([good._replace(address=bad), good, good._replace(address=bad), good])
    assert [type(result) for result in results] == [RejectedError, type(None), RejectedError, type(None)]


async def test_a_routing_key_that_is_too_long_fails_permanently_and_alone(
    make: MakeTransport, url: str, queue: str, batch: Batch
) -> None:
    before, long, after = batch(3)
    to = RabbitMQTransport.to(exchange="amq.topic", routing_key="{aggregate_type}.{event_type}")
    long = long._replace(address=to, message=long.message._replace(event_type="x" * 250))
    results = await make().send([before, long, after])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert len(take_all(url, queue)) == 2


async def test_headers_larger_than_a_frame_fail_permanently_and_keep_the_connection(
    make: MakeTransport, url: str, proxy: Proxy, proxied: str, queue: str, batch: Batch
) -> None:
    transport = make(proxied)
    before, heavy, after = batch(3)
    await transport.send(batch(1, "first"))
    heavy = heavy._replace(headers={f"h{n}": "x" * 8192 for n in range(16)})
    results = await transport.send([before, heavy, after])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert len(take_all(url, queue)) == 3
    assert proxy.accepted == 1


async def test_headers_that_just_fit_arrive(make: MakeTransport, url: str, queue: str, batch: Batch) -> None:
    [one] = batch(1)
    assert await make().send([one._replace(headers={f"h{n}": "x" * 8192 for n in range(14)})]) == [None]
    assert len(take_all(url, queue)) == 1


async def test_a_batch_larger_than_the_window_arrives_complete_and_in_order(
    make: MakeTransport, url: str, queue: str, batch: Batch
) -> None:
    assert await make(window=7).send(batch(100)) == [None] * 100
    assert [taken.properties.message_id for taken in take_all(url, queue)] == [f"e{n}" for n in range(100)]


async def test_many_batches_share_a_small_window(make: MakeTransport, url: str, queue: str, batch: Batch) -> None:
    transport = make(window=50)
    results = await asyncio.gather(*(transport.send(batch(40, f"{n}-")) for n in range(10)))
    assert results == [[None] * 40] * 10
    assert len({taken.properties.message_id for taken in take_all(url, queue)}) == 400


async def test_a_message_is_persistent_whatever_the_queue(make: MakeTransport, url: str, queue: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=False)
        assert await make(declare=False).send([outgoing("e1", RabbitMQTransport.to(routing_key=queue))]) == [None]
        _, properties, _ = broker.basic_get(queue, auto_ack=True)
    assert properties is not None
    assert properties.delivery_mode == 2
