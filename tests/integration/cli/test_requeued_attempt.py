"""A message requeued with `pillarbox dead broker requeue` gets one more attempt and has one effect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pillarbox import Consumer, FixedDelay
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation, DuplicateSkipped, EventProcessed, MessageDeadLettered
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQSource
from tests.integration.cli.work_queue import WorkQueue
from tests.integration.consume.broker import RETRY_DELAYS, publish


class Billing:
    """A consumer that fails until the test lets it succeed."""

    def __init__(self, work_queue: WorkQueue) -> None:
        self.broken = True
        self.attempts: list[int] = []
        self.reported: list[ConsumerObservation] = []
        self.consumer = Consumer(
            RabbitMQSource(work_queue.url, queue=work_queue.work, retry_delays=RETRY_DELAYS),
            name="billing",
            transaction=MemoryStore().transaction,
            retry=FixedDelay(delay="50ms", max_attempts=3),
            observers=[self.reported.append],
        )
        self.consumer.on("order.placed")(self.bill)

    async def bill(self, _: Any, event: ConsumedEvent) -> None:
        self.attempts.append(event.attempt)
        if self.broken:
            raise ValueError("no address")

    async def tells(self, kind: type[ConsumerObservation], count: int) -> None:
        """Wait for that many observations of a kind."""
        await eventually(lambda: sum(isinstance(one, kind) for one in self.reported) == count, within=90)


@asynccontextmanager
async def billing_of(work_queue: WorkQueue) -> AsyncIterator[Billing]:
    billing = Billing(work_queue)
    async with billing.consumer:
        yield billing


async def test_a_requeued_event_gets_one_more_attempt(work_queue: WorkQueue) -> None:
    publish(work_queue.url, work_queue.work, "e1")
    async with billing_of(work_queue) as billing:
        await billing.tells(MessageDeadLettered, 1)
        assert billing.attempts == [1, 2, 3]
        assert (await asyncio.to_thread(work_queue.json_output, "requeue", "--event-id", "e1"))["done"] == 1
        await billing.tells(MessageDeadLettered, 2)
        assert billing.attempts == [1, 2, 3, 4]
        [dead_letter] = (await asyncio.to_thread(work_queue.json_output, "list"))["dead_letters"]
        assert (dead_letter["attempts"], dead_letter["reason"], dead_letter["original_queue"]) == (
            4,
            "ValueError: no address",
            work_queue.work,
        )
        billing.broken = False
        await asyncio.to_thread(work_queue.wait_for, work_queue.dead, 1)
        assert (await asyncio.to_thread(work_queue.json_output, "requeue", "--all", "--yes"))["done"] == 1
        await billing.tells(EventProcessed, 1)
    assert billing.attempts == [1, 2, 3, 4, 5]
    assert work_queue.take(work_queue.dead) == []


async def test_messages_that_fail_again_are_requeued_once(work_queue: WorkQueue) -> None:
    ids = [f"e{n}" for n in range(30)]
    work_queue.dead_letter(*ids)
    async with billing_of(work_queue) as billing:
        assert (await asyncio.to_thread(work_queue.json_output, "requeue", "--all", "--yes"))["done"] == 30
        await billing.tells(MessageDeadLettered, 30)
    assert billing.attempts == [8] * 30
    assert sorted(map(str, work_queue.take(work_queue.dead))) == sorted(ids)


async def test_a_requeued_duplicate_has_no_effect(work_queue: WorkQueue) -> None:
    publish(work_queue.url, work_queue.work, "e1")
    async with billing_of(work_queue) as billing:
        billing.broken = False
        await billing.tells(EventProcessed, 1)
        work_queue.dead_letter("e1")
        await asyncio.to_thread(work_queue.json_output, "requeue", "--event-id", "e1")
        await billing.tells(DuplicateSkipped, 1)
    assert billing.attempts == [1]
