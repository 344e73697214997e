"""`python -m pillarbox.ops.drill.relay_process`: a relay that can be killed, frozen and drained.

It reports what it has in flight at each point of its work, and freezes itself at a point if the drill asks for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from typing import Any

from pillarbox import failpoints
from pillarbox.core.errors import RelayFailedError
from pillarbox.core.transport import Transport
from pillarbox.ops.child_process import on_parent_exit, read_job
from pillarbox.ops.drill.control import Control
from pillarbox.ops.drill.handler import make_handlers
from pillarbox.ops.drill.interruptions import InterruptionLog
from pillarbox.ops.drill.target import DrillJob, DrillTarget
from pillarbox.ops.wiring import open_store
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.telemetry.log_lines import LogOptions
from pillarbox.telemetry.logs import RelayLog

RETRY = ExponentialBackoff(base="100ms", max_delay="1s", jitter="none", max_attempts="unlimited")
DESTINATION = "drill"
_KILL_WITH_PARENT = 1
"""PR_SET_PDEATHSIG."""


async def run_relay(job: DrillJob) -> int:
    """Run until the parent stops it; return the exit code."""
    target = job.target()
    interruptions = InterruptionLog(job.folder, job.role)
    async with AsyncExitStack() as opened:
        store = open_store(target.settings.store, ledger=target.settings.store.ledger)
        opened.push_async_callback(store.aclose)
        transport, routing = _transport(target, job, opened)
        relay = Relay(
            store=store,
            transports={DESTINATION: transport},
            retry=RETRY,
            config=target.settings.relay.config,
            name=job.role,
            observers=[RelayLog(), interruptions.observe],
            **routing,
        )
        _watch(relay, Control(job.folder / f"{job.role}.control"))
        loop = asyncio.get_running_loop()
        on_parent_exit(lambda: loop.call_soon_threadsafe(relay.stop))
        try:
            await relay.run()
        except RelayFailedError as failure:
            print(failure, file=sys.stderr)
            return 1
    return 0


def _transport(target: DrillTarget, job: DrillJob, opened: AsyncExitStack) -> tuple[Transport, dict[str, Any]]:
    queue = target.open_queue()
    if queue is None:
        handlers = make_handlers(target, job.folder)
        opened.push_async_callback(handlers.aclose)
        return handlers, {}
    opened.push_async_callback(queue.aclose)
    routing = {"destinations": {DESTINATION: Destination(queue.address)}, "routes": [Route(to=[DESTINATION])]}
    return queue.transport, routing


def _watch(relay: Relay, control: Control) -> None:
    def reached(point: str) -> None:
        control.in_flight = relay.in_flight
        if control.is_due(point):
            os.kill(os.getpid(), signal.SIGSTOP)

    failpoints.watch(reached)


def _kill_with_parent() -> None:
    """Let the kernel kill this process with the drill: a frozen process does not notice that its pipe is closed."""
    with suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)


def main() -> int:
    _kill_with_parent()
    LogOptions().apply()
    return asyncio.run(run_relay(DrillJob.load(read_job())))


if __name__ == "__main__":
    raise SystemExit(main())
