"""The RabbitMQ transport without store and relay, which send and settle no faster than it publishes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from benchmarks.events import payload
from benchmarks.workers.control import Control, job
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport


async def run(work: dict[str, Any]) -> None:
    control, events = Control(profile=work["profile"]), work["events"]
    address = RabbitMQTransport.to(routing_key=work["queue"])
    async with aclosing(RabbitMQTransport(work["broker"], declare=False)) as rabbitmq:
        await rabbitmq.ping()
        # In flight at once: as many as the relay has in flight, or as many as the job says, each batch after the last.
        size = work.get("in_flight", rabbitmq.pace.batch_size)
        senders = 1 if "in_flight" in work else rabbitmq.pace.concurrency
        messages = [outgoing(f"event-{number}", address, body=payload(number)) for number in range(1, events + 1)]
        batches = iter([messages[first : first + size] for first in range(0, events, size)])

        async def send() -> None:
            for batch in batches:
                assert not any(await rabbitmq.send(batch))

        await control.ready()
        await asyncio.gather(*(send() for _ in range(senders)))
        await control.stopped()
        control.report()


if __name__ == "__main__":
    asyncio.run(run(job()))
