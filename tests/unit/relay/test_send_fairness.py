"""A relay whose transport never awaits still yields to the other tasks of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pillarbox import Event, Outbox, Relay
from pillarbox.core.transport import Outgoing, Pace, SendResult
from pillarbox.relay.send import TURN
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.memory import MemoryTransport

EVENTS = 500


class NeverWaits(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return self._arrive_together(batch)


async def test_other_tasks_run_between_the_sends_of_a_hot_key() -> None:
    store, transport = MemoryStore(), NeverWaits(pace=Pace(in_order=True))
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("a", {}, key="hot") for _ in range(EVENTS)))
    seen, most = 0, 0
    async with asyncio.timeout(60), Relay(store=store, transports={"memory": transport}):
        while seen < EVENTS:
            await asyncio.sleep(0)
            arrived = len(transport.deliveries)
            seen, most = arrived, max(most, arrived - seen)
    assert most <= TURN
