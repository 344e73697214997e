"""`python -m pillarbox.ops.drill.reader_process`: a reader of the drill's queue.

`audit` appends each message to the ledger as soon as it is received, and acknowledges it. `work` handles each message
with the inbox, and may be killed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, contextmanager, suppress
from typing import Any

from pillarbox.core.clock import SystemClock, system_rng
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.source import Source
from pillarbox.inbox.outages import receive_all
from pillarbox.ops.child_process import on_parent_exit, read_job
from pillarbox.ops.drill.control import Control
from pillarbox.ops.drill.handler import make_consumer
from pillarbox.ops.drill.ledger import ArrivalLog
from pillarbox.ops.drill.target import DrillJob, DrillTarget
from pillarbox.telemetry.consumer_logs import ConsumerLog
from pillarbox.telemetry.log_lines import LogOptions


async def audit(source: Source, arrivals: ArrivalLog, stopping: asyncio.Event) -> None:
    """Append every message to the ledger until `stopping`."""

    def failed(error: UnavailableError, pause: float) -> None:
        print(f"{error}; retrying in {pause:.1f} s", flush=True)

    async def receive() -> None:
        rng = system_rng()
        received = receive_all(source, failed=failed, restored=lambda _: None, clock=SystemClock(), rng=rng)
        async for delivery in received:
            arrivals.add(str(delivery.incoming.event_id))
            with suppress(UnavailableError):  # then it is delivered again, as a duplicate
                await delivery.ack()

    task = asyncio.create_task(receive())
    waiting = asyncio.create_task(stopping.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def work(target: DrillTarget, source: Source, control: Control, stopping: asyncio.Event) -> None:
    """Handle every message with the inbox until `stopping`."""

    @contextmanager
    def counted(_: Any) -> Any:
        control.in_flight += 1
        try:
            yield
        finally:
            control.in_flight -= 1

    consumer = make_consumer(target, source)
    consumer.observe(ConsumerLog())
    consumer.surround(counted)
    async with consumer:
        await stopping.wait()


async def run(job: DrillJob) -> None:
    target = job.target()
    queue = target.open_queue()
    if queue is None:
        raise ConfigurationError("a reader needs a broker")
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    on_parent_exit(lambda: loop.call_soon_threadsafe(stopping.set))
    async with aclosing(queue):
        if job.role.startswith("audit"):
            source = queue.source("audit")
            async with aclosing(source):
                await audit(source, ArrivalLog(job.folder), stopping)
        else:
            await work(target, queue.source("work"), Control(job.folder / f"{job.role}.control"), stopping)


def main() -> None:
    LogOptions().apply()
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    asyncio.run(run(DrillJob.load(read_job())))


if __name__ == "__main__":
    main()
