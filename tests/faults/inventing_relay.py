"""`python -m tests.faults.inventing_relay`: a relay of a drill that sends what no writer recorded, at last."""

from __future__ import annotations

import asyncio

from pillarbox.ops.child_process import read_job
from pillarbox.ops.drill.relay_process import run_relay
from pillarbox.ops.drill.target import DrillJob
from pillarbox.testing.conformance.transports import outgoing


async def run(job: DrillJob) -> int:
    code = await run_relay(job)
    queue = job.target().open_queue()
    assert queue is not None
    [result] = await queue.transport.send([outgoing(f"invented-{job.role}", queue.address)])
    assert result is None
    await queue.aclose()
    return code


if __name__ == "__main__":
    raise SystemExit(asyncio.run(run(DrillJob.load(read_job()))))
