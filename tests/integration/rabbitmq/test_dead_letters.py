"""Dead letters on a broker are received and returned in order, and moved without loss."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pika
import pytest

from pillarbox import RejectedError, UnavailableError
from pillarbox.core.errors import NackedError
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQDeadLetters
from tests.integration.consume.broker import declared, publish, ready
from tests.integration.rabbitmq.consumer import channel, publish_confirmed, take_all
from tests.integration.rabbitmq.proxy import Proxy


@pytest.fixture
async def dead(url: str) -> AsyncIterator[RabbitMQDeadLetters]:
    dead_letters = RabbitMQDeadLetters(url)
    yield dead_letters
    await dead_letters.aclose()


def publish_dead_letters(url: str, queue: Queue, count: int) -> list[str]:
    """Publish dead letters, and return their ids in order."""
    ids = [f"e{n}" for n in range(count)]
    with channel(url) as broker:
        declared(broker, queue)
        broker.confirm_delivery()
        for event_id in ids:
            publish_confirmed(broker, "", queue.name, b"{}", pika.BasicProperties(message_id=event_id, delivery_mode=2))
    return ids


async def has_ready(url: str, queue: str, count: int) -> bool:
    """Whether this many messages are ready in the queue."""
    return await asyncio.to_thread(ready, url, queue) == count


async def listed(dead: RabbitMQDeadLetters, queue: str, most: int) -> list[str | None]:
    async with dead.receive(queue, limit=most, prefetch=most) as messages:
        return [received.dead_letter.event_id async for received in messages]


def ids_in(url: str, queue: str) -> list[str | None]:
    return [taken.properties.message_id for taken in take_all(url, queue)]


@pytest.mark.parametrize("kind", ["quorum", "classic"])
async def test_received_dead_letters_return_in_order(
    url: str, queue: str, dead: RabbitMQDeadLetters, kind: Any
) -> None:
    ids = await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue, type=kind), 300)
    for most in (200, 300, 7, 150, 1):
        await eventually(lambda: has_ready(url, queue, 300))
        assert await listed(dead, queue, most) == ids[:most]
    await eventually(lambda: has_ready(url, queue, 300))
    assert await asyncio.to_thread(ids_in, url, queue) == ids


@pytest.mark.parametrize("kind", ["quorum", "classic"])
async def test_dead_letters_in_transit_are_received_although_the_queue_is_empty(
    url: str, queue: str, dead: RabbitMQDeadLetters, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy broker sends all messages at once, and reports an empty queue before the last ones arrive."""
    monkeypatch.setattr("pillarbox.transports.rabbitmq.dead_letters._PAUSE", 0)
    ids = await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue, type=kind), 300)
    for _ in range(10):
        await eventually(lambda: has_ready(url, queue, 300))
        assert await listed(dead, queue, 1000) == ids


@pytest.mark.parametrize("kind", ["quorum", "classic"])
async def test_the_rest_keeps_its_order_after_some_were_moved(
    url: str, queue: str, new_name: Callable[[], str], dead: RabbitMQDeadLetters, kind: Any
) -> None:
    ids = await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue, type=kind), 100)
    await asyncio.to_thread(publish, url, target := new_name())
    async with dead.receive(queue, limit=100, prefetch=20) as messages:
        async for received in messages:
            await received.move(target)
            if received.dead_letter.event_id == "e49":
                break
    await eventually(lambda: has_ready(url, queue, 50))
    assert await asyncio.to_thread(ids_in, url, target) == ids[:50]
    assert await asyncio.to_thread(ids_in, url, queue) == ids[50:]


async def test_receiving_ends_when_another_consumer_took_the_rest(
    url: str, queue: str, dead: RabbitMQDeadLetters
) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 3)
    assert await listed(dead, queue, 1000) == ["e0", "e1", "e2"]


async def test_no_more_are_unacked_than_the_prefetch(url: str, queue: str, dead: RabbitMQDeadLetters) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 10)
    async with dead.receive(queue, limit=10, prefetch=4) as messages:
        assert [received.dead_letter.event_id async for received in messages] == ["e0", "e1", "e2", "e3"]
        assert await has_ready(url, queue, 6)


async def test_receiving_none_leaves_the_queue_to_others(url: str, queue: str, dead: RabbitMQDeadLetters) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 10)
    async with dead.receive(queue, limit=0, prefetch=4) as messages:
        assert [received async for received in messages] == []
        assert await asyncio.to_thread(ready, url, queue) >= 9


async def test_the_depth_of_a_queue_and_of_a_missing_one(url: str, queue: str, dead: RabbitMQDeadLetters) -> None:
    assert await dead.depth(queue) is None
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 3)
    assert await dead.depth(queue) == 3


async def test_a_moved_dead_letter_is_complete_and_persistent_without_headers_of_the_broker(
    url: str, queue: str, new_name: Callable[[], str], dead: RabbitMQDeadLetters
) -> None:
    notes = {"pillarbox-attempts": 7, "tenant": "acme", "x-death": [{"queue": "orders", "reason": "expired"}]}
    await asyncio.to_thread(publish, url, queue, "e1", headers=notes, app_id="till", correlation_id="c")
    await asyncio.to_thread(publish, url, target := Queue(name=new_name(), type="classic"))
    async with dead.receive(queue, limit=1, prefetch=1) as messages:
        async for received in messages:
            await received.move(target.name)
    [moved] = await asyncio.to_thread(take_all, url, target.name)
    assert (moved.body, moved.properties.message_id, moved.properties.app_id) == (b'{"id": "e1"}', "e1", "till")
    assert (moved.properties.delivery_mode, moved.properties.correlation_id) == (2, "c")
    assert moved.properties.headers == {"pillarbox-attempts": 7, "tenant": "acme"}
    assert await asyncio.to_thread(ids_in, url, queue) == []


async def test_a_dead_letter_for_a_missing_queue_stays_and_the_next_one_moves(
    url: str, queue: str, new_name: Callable[[], str], dead: RabbitMQDeadLetters
) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 2)
    await asyncio.to_thread(publish, url, target := new_name())
    async with dead.receive(queue, limit=2, prefetch=2) as messages:
        first, second = [received async for received in messages]
        with pytest.raises(RejectedError, match="no such queue"):
            await first.move(new_name())
        await second.move(target)
    await eventually(lambda: has_ready(url, queue, 1))
    assert await asyncio.to_thread(ids_in, url, queue) == ["e0"]
    assert await asyncio.to_thread(ids_in, url, target) == ["e1"]


async def test_a_dead_letter_for_a_full_queue_stays(
    url: str, queue: str, new_name: Callable[[], str], dead: RabbitMQDeadLetters
) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 1)
    full = Queue(name=new_name(), type="classic", max_length=1)
    await asyncio.to_thread(publish, url, full, "earlier")
    async with dead.receive(queue, limit=1, prefetch=1) as messages:
        async for received in messages:
            with pytest.raises(NackedError):
                await received.move(full.name)
    await eventually(lambda: has_ready(url, queue, 1))


async def test_a_connection_lost_between_publish_and_ack_loses_nothing(
    url: str, queue: str, new_name: Callable[[], str], proxy: Proxy, proxied: str
) -> None:
    await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 2)
    await asyncio.to_thread(publish, url, target := new_name())
    dead = RabbitMQDeadLetters(proxied)
    async with dead.receive(queue, limit=2, prefetch=2) as messages:
        first, second = [received async for received in messages]
        await first.move(target)
        await eventually(lambda: has_ready(url, target, 1))
        proxy.silence()
        moving = asyncio.create_task(second.move(target))
        await eventually(lambda: has_ready(url, target, 2))  # published, and its confirm is held back
        await proxy.reset()
        with pytest.raises(UnavailableError):
            await moving
    await dead.aclose()
    await eventually(lambda: has_ready(url, queue, 1))
    assert await asyncio.to_thread(ids_in, url, queue) == ["e1"]
    assert await asyncio.to_thread(ids_in, url, target) == ["e0", "e1"]


async def test_dead_letters_return_when_the_connection_is_lost(
    url: str, queue: str, proxy: Proxy, proxied: str
) -> None:
    ids = await asyncio.to_thread(publish_dead_letters, url, Queue(name=queue), 50)
    dead = RabbitMQDeadLetters(proxied)
    async with dead.receive(queue, limit=51, prefetch=51) as messages:
        async for received in messages:
            if received.dead_letter.event_id == "e49":
                break
        await proxy.reset()
        with pytest.raises(UnavailableError):
            await anext(messages)
    await dead.aclose()
    await eventually(lambda: has_ready(url, queue, 50))
    assert await asyncio.to_thread(ids_in, url, queue) == ids


async def test_a_queue_with_an_exclusive_consumer_is_rejected(url: str, queue: str, dead: RabbitMQDeadLetters) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True)
        broker.basic_consume(queue, lambda *_: None, exclusive=True)
        with pytest.raises(RejectedError, match="cannot be read: ACCESS_REFUSED"):
            await listed(dead, queue, 1)


async def test_a_single_active_consumer_queue_times_out(url: str, queue: str) -> None:
    dead = RabbitMQDeadLetters(url, reply_timeout="500ms")
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True, arguments={"x-single-active-consumer": True})
        broker.basic_qos(prefetch_count=1)
        broker.basic_consume(queue, lambda *_: None)
        for _ in range(2):
            broker.basic_publish("", queue, b"{}")
        await eventually(lambda: has_ready(url, queue, 1))
        with pytest.raises(RejectedError, match="delivers no message"):
            await listed(dead, queue, 1)
    await dead.aclose()
