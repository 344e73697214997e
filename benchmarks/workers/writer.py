"""A service that records events at a steady rate: `python -m benchmarks.workers.writer '{"store": …, "rate": 200}'`."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import asyncpg

from benchmarks.workers.control import Control, job, write_times
from pillarbox import Event, Outbox

PER_CONNECTION = 250
"""Events a second that one connection commits without falling behind."""


async def run(work: dict[str, Any]) -> None:
    """Record `events` events at `rate` a second; notes when each transaction began to commit."""
    control, rate, events = Control(), work["rate"], work["events"]
    connections = [await asyncpg.connect(work["store"]) for _ in range(1 + rate // PER_CONNECTION)]
    outbox, committed = Outbox(), {}
    numbers = itertools.count()

    async def write(connection: Any, began: float) -> None:
        while (number := next(numbers)) < events:
            await asyncio.sleep(began + number / rate - time.monotonic())
            payload = {"marker": f"#{number + 1:010d}#", "pad": "x" * 280}
            event = Event("order.placed", payload, key=f"ORDER:{number % work['keys']}")
            transaction = connection.transaction()
            await transaction.start()
            await outbox.arecord(connection, event)
            committed[event.event_id] = time.monotonic()
            await transaction.commit()

    await control.ready()
    began = time.monotonic()
    await asyncio.gather(*(write(connection, began) for connection in connections))
    for connection in connections:
        await connection.close()
    write_times(work["committed"], committed)
    control.report(seconds=time.monotonic() - began)


if __name__ == "__main__":
    asyncio.run(run(job()))
