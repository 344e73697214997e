"""A stopped consumer reports whether messages were still in flight."""

import asyncio

import pytest

from pillarbox import Consumer
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.observations import ConsumerObservation, ConsumerStopped
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.sources import incoming
from pillarbox.transports.memory_source import MemoryQueue, MemorySource


@pytest.mark.parametrize("events", [0, 1])
async def test_only_messages_in_flight_are_redelivered(events: int) -> None:
    queue, reported, ready = MemoryQueue(), list[ConsumerObservation](), asyncio.Event()
    consumer = Consumer(MemorySource(queue), name="billing", transaction=MemoryStore().transaction)

    @consumer.observe
    def note(observation: ConsumerObservation) -> None:
        reported.append(observation)
        if not events:
            ready.set()

    @consumer.on("*")
    async def bill(transaction: MemoryTransaction, event: ConsumedEvent) -> None:
        ready.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(consumer.run())
    for number in range(events):
        queue.put(incoming(f"e{number}"))
    await asyncio.wait_for(ready.wait(), 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert reported[-1] == ConsumerStopped(consumer="billing", drained=events == 0)
