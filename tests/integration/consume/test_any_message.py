"""Any message of a broker is handled or dead-lettered, and does not affect others."""

import asyncio
from itertools import count

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pillarbox import Consumer, FixedDelay
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import (
    ConsumerObservation,
    DuplicateSkipped,
    EventProcessed,
    MessageDeadLettered,
    SourceFailed,
)
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQSource
from tests.integration.consume.broker import RETRY_DELAYS, publish, ready
from tests.integration.consume.strange import FOUND, MESSAGES, Strange, publish_strange
from tests.integration.rabbitmq.consumer import channel

_numbers = count()


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(MESSAGES, min_size=20, max_size=40))
@example(FOUND)
def test_any_message_is_handled_or_dead_lettered_without_affecting_others(
    url: str, queue: str, messages: list[Strange]
) -> None:
    asyncio.run(_each_ends(url, queue, messages))


async def _each_ends(url: str, queue: str, messages: list[Strange]) -> None:
    """Messages that could be handled are made to fail, so that they pass the wait queues as well."""
    neighbours = {f"good-{next(_numbers)}" for _ in range(5)}
    observations: list[ConsumerObservation] = []
    source = RabbitMQSource(url, queue=queue, prefetch=7, retry_delays=RETRY_DELAYS)
    consumer = Consumer(
        source,
        name="billing",
        transaction=MemoryStore().transaction,
        retry=FixedDelay(delay="50ms", max_attempts=2),
        observers=[observations.append],
    )

    @consumer.on("order.placed")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        assert event.payload_bytes is not None

    @consumer.on("*")
    async def fail(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        raise ValueError("no")

    async with consumer:
        await eventually(lambda: _exists(url, queue), within=90)
        await asyncio.to_thread(_send, url, queue, messages, neighbours)

        async def ended() -> bool:
            ends = [
                one for one in observations if isinstance(one, (EventProcessed, DuplicateSkipped, MessageDeadLettered))
            ]
            return len(ends) == len(messages) + len(neighbours)

        await eventually(ended, within=60)
    assert {one.event_id for one in observations if isinstance(one, EventProcessed)} >= neighbours
    assert [one for one in observations if isinstance(one, SourceFailed)] == []
    dead = sum(isinstance(one, MessageDeadLettered) for one in observations)
    with channel(url) as broker:
        assert broker.queue_purge(f"{queue}.dlq").method.message_count == dead
        for name in (queue, f"{queue}.quarantine", *(f"{queue}.wait.{wait}" for wait in RETRY_DELAYS)):
            assert broker.queue_declare(name, passive=True).method.message_count == 0


async def _exists(url: str, queue: str) -> bool:
    try:
        await asyncio.to_thread(ready, url, queue)
    except Exception:
        return False
    return True


def _send(url: str, queue: str, messages: list[Strange], neighbours: set[str]) -> None:
    before, after = sorted(neighbours)[:2], sorted(neighbours)[2:]
    publish(url, queue, *before)
    with channel(url) as broker:
        broker.confirm_delivery()
        publish_strange(broker, queue, messages)
    publish(url, queue, *after)
