"""Lost connections, restarted brokers, deleted queues, draining: the consumer recovers and loses nothing."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pillarbox import ConfigurationError, ExponentialBackoff, FixedDelay, NoRetry
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import (
    ConsumerStopped,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
)
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue
from tests.integration.consume.broker import dead_letters, declared, publish, ready
from tests.integration.consume.conftest import Effects, MakeShop
from tests.integration.rabbitmq.consumer import channel, publish_confirmed
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer

BOUND = 90.0


@pytest.fixture(scope="module")
def rabbitmq_server(victim: RabbitMQServer) -> RabbitMQServer:
    """A broker that the test may restart."""
    return victim


async def test_waiting_messages_survive_a_broker_restart(
    rabbitmq_server: RabbitMQServer, url: str, queue: str, make_shop: MakeShop
) -> None:
    publish(url, queue, "e1")
    shop = make_shop(retry_delays=["2s"], retry=FixedDelay(delay="2s", max_attempts=2))

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        shop.began.append(event.event_id)
        raise ValueError(f"attempt {event.attempt}")

    async with shop.running():
        await eventually(lambda: shop.kinds(HandlingFailed), within=BOUND)
        assert await eventually(lambda: asyncio.to_thread(ready, url, f"{queue}.wait.2s")) == 1
        await asyncio.to_thread(rabbitmq_server.restart)
        await eventually(lambda: shop.kinds(MessageDeadLettered), within=BOUND)
    assert shop.kinds(SourceFailed)
    [dead_letter] = dead_letters(url, queue)
    assert (dead_letter.properties.headers or {})["pillarbox-attempts"] == 2
    assert shop.began == ["e1", "e1"]


async def test_waiting_messages_are_kept_until_the_work_queue_accepts_them(
    rabbitmq_server: RabbitMQServer, url: str, queue: str, make_shop: MakeShop
) -> None:
    await make_shop().source.declare_topology()
    with channel(url) as broker:
        broker.queue_delete(queue)
        broker.confirm_delivery()
        publish_confirmed(broker, "", f"{queue}.wait.50ms", b"{}")

    # `list_queues` does not show messages that were dead-lettered and not confirmed.
    found = f'{{ok, Queue}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{queue}.wait.50ms">>))'
    ask = f"{found}, [{{messages_dlx, 1}}] =:= rabbit_quorum_queue:info(Queue, [messages_dlx])"

    async def waits_for_its_queue() -> bool:
        return await asyncio.to_thread(rabbitmq_server.evaluate, ask) == "true"

    await eventually(waits_for_its_queue, within=BOUND)


async def test_after_a_lost_connection_each_effect_happens_once(
    url: str, proxied: str, proxy: Proxy, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    publish(url, queue, "e1")
    shop, begun, go_on = make_shop(broker=proxied), asyncio.Event(), asyncio.Event()

    @shop.consumer.on("order.placed")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        begun.set()
        await go_on.wait()

    async with shop.running():
        await asyncio.wait_for(begun.wait(), BOUND)
        await proxy.reset()
        await eventually(lambda: shop.kinds(SourceFailed), within=BOUND)
        go_on.set()  # commits, but cannot ack
        await eventually(lambda: shop.kinds(DuplicateSkipped), within=BOUND)
        await asyncio.to_thread(publish, url, queue, "e2")
        await eventually(lambda: shop.kinds(EventProcessed), within=BOUND)
    assert effects() == ["e1", "e2"]
    assert ready(url, queue) == 0


async def test_a_deleted_queue_is_declared_again(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    publish(url, queue, "e1")
    shop = make_shop()
    shop.consumer.on("*")(shop.effect)
    async with shop.running():
        await eventually(lambda: shop.kinds(EventProcessed))
        with channel(url) as broker:
            broker.queue_delete(queue)
        await eventually(lambda: shop.kinds(SourceFailed))
        await asyncio.to_thread(publish, url, queue, "e2")
        await eventually(lambda: len(shop.kinds(EventProcessed)) == 2)
    assert effects() == ["e1", "e2"]


async def test_a_channel_that_ended_keeps_no_messages(url: str, queue: str, make_shop: MakeShop) -> None:
    publish(url, queue, "e1", "e2", "e3")
    source = make_shop().source
    async with asyncio.timeout(BOUND):
        await source.receive()
    ended = source._channel
    with channel(url) as broker:
        broker.queue_delete(f"{queue}.quarantine")
        await eventually(lambda: ended is not None and ended.failure is not None)
        declared(broker, Queue(name=f"{queue}.quarantine"))
    async with asyncio.timeout(BOUND):
        assert [(await source.receive()).incoming.event_id for _ in range(3)] == ["e1", "e2", "e3"]


async def test_a_deleted_dead_letter_queue_is_declared_again(url: str, queue: str, make_shop: MakeShop) -> None:
    publish(url, queue, "e1")
    shop = make_shop(retry=NoRetry())

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        raise ValueError("no")

    async with shop.running():
        await eventually(lambda: shop.kinds(MessageDeadLettered), within=BOUND)
        with channel(url) as broker:
            broker.queue_delete(f"{queue}.dlq")
        await asyncio.to_thread(publish, url, queue, "e2")
        await eventually(lambda: len(shop.kinds(MessageDeadLettered)) == 2, within=BOUND)
    assert [dead_letter.properties.message_id for dead_letter in dead_letters(url, queue)] == ["e2"]


@pytest.fixture
def short_of_disk(rabbitmq_server: RabbitMQServer) -> Iterator[Callable[[], None]]:
    """Makes the broker block publishers until the test ends."""
    yield lambda: rabbitmq_server.limit_disk("1000000GB")
    rabbitmq_server.limit_disk("10MB")


async def test_a_blocked_broker_accepts_acks_and_loses_nothing(
    url: str, queue: str, make_shop: MakeShop, effects: Effects, short_of_disk: Callable[[], None]
) -> None:
    publish(url, queue, "bad", "good")
    shop, go_on = make_shop(drain_timeout="500ms"), asyncio.Event()

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        await go_on.wait()
        if event.event_id == "bad":
            raise ValueError("a failure while the broker blocks publishers")

    async with shop.running():
        await eventually(lambda: len(shop.began) == 2, within=BOUND)
        await asyncio.to_thread(short_of_disk)
        go_on.set()
        await eventually(lambda: shop.kinds(EventProcessed) and shop.kinds(HandlingFailed))
    assert effects() == ["good"]
    assert await eventually(lambda: asyncio.to_thread(ready, url, queue)) == 1


async def test_a_stop_finishes_messages_in_flight(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    publish(url, queue, "e1", "e2", "e3")
    shop, begun, go_on = make_shop(prefetch=1), asyncio.Event(), asyncio.Event()

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        begun.set()
        await go_on.wait()

    running = asyncio.create_task(shop.consumer.run())
    await asyncio.wait_for(begun.wait(), BOUND)
    shop.consumer.stop()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(running, BOUND)
    assert effects() == ["e1"]
    assert ready(url, queue) == 2
    assert shop.observations[-1] == ConsumerStopped(consumer="billing", drained=True)


async def test_a_handler_beyond_the_drain_timeout_is_rolled_back_and_requeued(
    url: str, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    publish(url, queue, "e1")
    shop, begun = make_shop(drain_timeout="10ms"), asyncio.Event()

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(shop.consumer.run())
    await asyncio.wait_for(begun.wait(), BOUND)
    shop.consumer.stop()
    await asyncio.wait_for(running, BOUND)
    assert effects() == []
    assert await eventually(lambda: asyncio.to_thread(ready, url, queue)) == 1
    assert shop.observations[-1] == ConsumerStopped(consumer="billing", drained=False)


async def test_a_consumer_can_run_as_a_context_manager(
    url: str, queue: str, make_shop: MakeShop, effects: Effects
) -> None:
    publish(url, queue, "e1")
    shop = make_shop()
    shop.consumer.on("*")(shop.effect)
    async with shop.consumer:
        await eventually(lambda: shop.kinds(EventProcessed))
    assert effects() == ["e1"]


async def test_a_queue_that_would_lose_events_stops_the_consumer(url: str, queue: str, make_shop: MakeShop) -> None:
    with channel(url) as broker:
        broker.queue_declare(queue, durable=True, auto_delete=True)
    shop = make_shop()
    shop.consumer.on("*")(shop.effect)
    with pytest.raises(ConfigurationError, match="is not what the configuration says"):
        await shop.consumer.run()
    # Nothing was in flight.
    assert shop.observations[-1] == ConsumerStopped(consumer="billing", drained=True)


async def test_a_classic_queue_can_be_consumed(url: str, queue: str, make_shop: MakeShop, effects: Effects) -> None:
    work = Queue(name=queue, type="classic")
    publish(url, work, "e1", "e2")
    shop = make_shop(work=work, retry=ExponentialBackoff(base="10ms", jitter="none", max_attempts=3))

    @shop.consumer.on("*")
    async def bill(transaction: Any, event: ConsumedEvent) -> None:
        await shop.effect(transaction, event)
        if event.attempt == 1:
            raise ValueError("not yet")

    async with shop.running():
        await eventually(lambda: len(shop.kinds(EventProcessed)) == 2)
    assert effects() == ["e1", "e2"]
