"""A message whose consumers crash is handled alone, and dead-lettered after too many crashes."""

import asyncio

from pillarbox import Consumer
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.consumer import MAX_CRASHES
from pillarbox.inbox.observations import ConsumerObservation, EventProcessed, MessageDeadLettered
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.sources import incoming
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory_source import QUARANTINE_AFTER, MemoryQueue, MemorySource


async def crash(queue: MemoryQueue, number: int) -> None:
    """Receive that many messages and crash."""
    source = MemorySource(queue)
    for _ in range(number):
        await source.receive()
    await source.aclose()


async def test_quarantined_messages_are_handled_alone_and_others_concurrently() -> None:
    queue = MemoryQueue()
    for name in ("s1", "s2"):
        queue.put(incoming(name))
    for _ in range(QUARANTINE_AFTER):
        await crash(queue, 2)
    for name in ("a", "b", "c"):
        queue.put(incoming(name))
    at_work: set[str] = set()
    beside_quarantined: set[str] = set()
    together = asyncio.Event()
    reported: list[ConsumerObservation] = []
    consumer = Consumer(MemorySource(queue), name="billing", transaction=_Nothing, observers=[reported.append])

    @consumer.on("*")
    async def bill(transaction: object, event: ConsumedEvent) -> None:
        at_work.add(event.event_id)
        if event.event_id in ("s1", "s2"):
            for _ in range(200):  # passes of the event loop, in which others could begin
                await asyncio.sleep(0)
                beside_quarantined.update(at_work - {event.event_id})
        else:
            if at_work == {"a", "b", "c"}:
                together.set()
            async with asyncio.timeout(60):
                await together.wait()
        at_work.discard(event.event_id)

    async with consumer:
        await eventually(lambda: sum(isinstance(one, EventProcessed) for one in reported) == 5)
    assert beside_quarantined == set()
    assert together.is_set()


class _Nothing:
    """A transaction of the memory store that several may have open in one event loop."""

    _store = MemoryStore()

    async def __aenter__(self) -> object:
        self._block = self._store.transaction()
        return self._block.__enter__()

    async def __aexit__(self, *error: object) -> None:
        self._block.__exit__(None, None, None)


async def test_after_too_many_crashes_a_message_is_dead_lettered_unhandled() -> None:
    queue, reported = MemoryQueue(), list[ConsumerObservation]()
    queue.put(incoming("poison"))
    for _ in range(QUARANTINE_AFTER + MAX_CRASHES):
        await crash(queue, 1)
    consumer = Consumer(
        MemorySource(queue), name="billing", transaction=MemoryStore().transaction, observers=[reported.append]
    )
    handled: list[str] = []
    consumer.on("*")(lambda transaction, event: handled.append(event.event_id))
    async with consumer:
        await eventually(lambda: any(isinstance(one, MessageDeadLettered) for one in reported))
    assert handled == []
    assert "crashed or lost their connection" in queue.dead[0].reason
