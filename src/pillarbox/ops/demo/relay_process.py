"""`python -m pillarbox.ops.demo.relay_process`: the demo's relay, a process of its own, so that it can be killed."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from pillarbox.core.errors import RelayFailedError
from pillarbox.core.retry import ExponentialBackoff
from pillarbox.core.transport import Transport
from pillarbox.ops.demo.handlers import make_handlers
from pillarbox.ops.demo.leash import told_scene, when_let_go
from pillarbox.ops.demo.ledger import Ledger
from pillarbox.ops.demo.sabotage import cheating
from pillarbox.ops.demo.scene import CONFIG, Scene
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Route
from pillarbox.telemetry.log_lines import log_to_stderr
from pillarbox.telemetry.logs import RelayLog

RETRY = ExponentialBackoff(base="200ms", max="2s", jitter="none", max_attempts=0)


async def carry(scene: Scene) -> int:
    """Work until let go; the exit code."""
    ledger = Ledger(scene.ledger)
    transport, ways = _way_out(scene, ledger)
    store = scene.open_store()
    relay = Relay(
        store=store,
        transports={"out": transport},
        retry=RETRY,
        config=CONFIG,
        name="demo",
        observers=[RelayLog()],
        **ways,
    )
    loop = asyncio.get_running_loop()
    when_let_go(lambda: loop.call_soon_threadsafe(relay.stop))
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


def _way_out(scene: Scene, ledger: Ledger) -> tuple[Transport, dict[str, Any]]:
    if not scene.transport:
        return make_handlers(cheating(scene.sabotage, scene.receivers[0], ledger.note)), {}
    from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport

    broker = RabbitMQTransport(scene.transport, queues=[Queue(name=scene.name)], send_timeout=CONFIG.send_timeout)
    address = RabbitMQTransport.to(routing_key=scene.name)
    return broker, {"destinations": {"orders": address}, "routes": [Route(to=["orders"])]}


def main() -> int:
    log_to_stderr(logging.INFO)
    logging.getLogger("pillarbox.relay.events").setLevel(logging.WARNING)
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    return asyncio.run(carry(told_scene()))


if __name__ == "__main__":
    raise SystemExit(main())
