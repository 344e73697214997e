"""`python -m pillarbox.ops.demo.relay_process`: runs the relay in its own process, so that it can be killed."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from pillarbox.core.errors import RelayFailedError
from pillarbox.core.transport import Transport
from pillarbox.ops.child_process import on_parent_exit, read_job
from pillarbox.ops.demo.environment import CONFIG, DemoEnvironment
from pillarbox.ops.demo.fault_injection import with_fault
from pillarbox.ops.demo.handlers import make_handlers
from pillarbox.ops.demo.ledger import LedgerWriter
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Route
from pillarbox.retry_policies import ExponentialBackoff
from pillarbox.telemetry.log_lines import LogOptions
from pillarbox.telemetry.logs import RelayLog

RETRY = ExponentialBackoff(base="200ms", max_delay="2s", jitter="none", max_attempts="unlimited")


async def run_relay(environment: DemoEnvironment) -> int:
    """Run until the parent stops it; return the exit code."""
    ledger = LedgerWriter(environment.ledger)
    transport, routing = _transport(environment, ledger)
    store = environment.open_store()
    relay = Relay(
        store=store,
        transports={"out": transport},
        retry=RETRY,
        config=CONFIG,
        name="demo",
        observers=[RelayLog()],
        **routing,
    )
    loop = asyncio.get_running_loop()
    on_parent_exit(lambda: loop.call_soon_threadsafe(relay.stop))
    try:
        await relay.run()
    except RelayFailedError as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        await transport.aclose()
        await store.aclose()
        ledger.close()
    return 0


def _transport(environment: DemoEnvironment, ledger: LedgerWriter) -> tuple[Transport, dict[str, Any]]:
    if not environment.transport:
        return make_handlers(with_fault(environment.inject, environment.receivers[0], ledger.append)), {}
    from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport

    queues = [Queue(name=environment.name)]
    broker = RabbitMQTransport(environment.transport, queues=queues, send_timeout=CONFIG.send_timeout)
    address = RabbitMQTransport.to(routing_key=environment.name)
    return broker, {"destinations": {"orders": address}, "routes": [Route(to=["orders"])]}


def main() -> int:
    LogOptions().apply()
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return asyncio.run(run_relay(DemoEnvironment.load(read_job())))


if __name__ == "__main__":
    raise SystemExit(main())
