"""Messages that crashed their consumers, while the broker takes none of them into quarantine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from pillarbox.transports.rabbitmq import RabbitMQSource
from pillarbox.transports.rabbitmq.source import RabbitMQDelivery
from pillarbox.transports.rabbitmq.topology import work_queue
from tests.integration.consume.broker import RETRY_DELAYS, publish, ready
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

BOUND = 60.0


@pytest.fixture(scope="module")
def rabbitmq_server(victim: RabbitMQServer) -> RabbitMQServer:
    """A broker that the test may block."""
    return victim


@pytest.fixture
def short_of_memory(rabbitmq_server: RabbitMQServer) -> Iterator[Callable[[], None]]:
    """Makes the broker block publishers until the test ends."""
    yield lambda: rabbitmq_server.limit_memory(0.0000001)
    rabbitmq_server.limit_memory(0.4)


@pytest.fixture
async def source(url: str, queue: str) -> AsyncIterator[RabbitMQSource]:
    source = RabbitMQSource(url, queue=queue, retry_delays=RETRY_DELAYS)
    await source.declare_topology()
    yield source
    await source.aclose()


def crash(url: str, queue: str, *, times: int, messages: int = 1) -> None:
    """Receive the first messages, and close the connection without an ack."""
    for _ in range(times):
        with channel(url) as broker:
            for _ in range(messages):
                wait_until(lambda: broker.basic_get(queue)[0] is not None, bound=30, what="it comes")


async def received(source: RabbitMQSource) -> RabbitMQDelivery:
    async with asyncio.timeout(BOUND):
        return await source.receive()


async def test_a_message_that_cannot_move_to_quarantine_is_delivered_alone_and_holds_up_no_other(
    url: str, queue: str, source: RabbitMQSource, short_of_memory: Callable[[], None]
) -> None:
    publish(url, work_queue(queue), "crasher", "other")
    crash(url, queue, times=2)
    short_of_memory()
    for expected in (("crasher", True, 0), ("other", False, 0)):
        delivery = await received(source)
        assert (delivery.incoming.event_id, delivery.quarantined, delivery.crashes) == expected
        await delivery.ack()
    await source.aclose()
    assert ready(url, queue) == 0


async def test_crashes_while_a_message_cannot_move_count_for_the_first_message_only(
    url: str, queue: str, source: RabbitMQSource, short_of_memory: Callable[[], None]
) -> None:
    publish(url, work_queue(queue), "crasher", "received-with-it")
    crash(url, queue, times=7, messages=2)
    short_of_memory()
    for expected in (("crasher", True, 5), ("received-with-it", True, 0)):
        delivery = await received(source)
        assert (delivery.incoming.event_id, delivery.quarantined, delivery.crashes) == expected
