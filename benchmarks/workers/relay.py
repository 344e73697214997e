"""A Pillarbox relay as a process of its own: `python -m benchmarks.workers.relay '{"store": …}'`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from benchmarks.workers.control import Control, job, write_times
from pillarbox import Destination, Handlers, Relay, RelayConfig, Route
from pillarbox.core.transport import Transport
from pillarbox.ops.bench.timed_transport import TimedTransport
from pillarbox.ops.cli.relay import collect_rarely
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.rabbitmq import RabbitMQTransport


class CountingHandlers(Handlers):
    """A handler that does nothing but remember which events it met."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

        @self.on("order.placed", name="counter")
        async def count(event: Any, _context: Any) -> None:
            self.met.append(event.event_id)


def observers_of(work: Mapping[str, Any]) -> list[Any]:
    if not work.get("metrics"):
        return []
    from pillarbox.telemetry.prometheus import RelayMetrics

    return [RelayMetrics()]


def relay_of(work: Mapping[str, Any], store: Any, transport: Transport, **ways: Any) -> Relay:
    config = RelayConfig(**work.get("config", {}))
    return Relay(store=store, transports={"out": transport}, config=config, observers=observers_of(work), **ways)


async def to_handlers(work: dict[str, Any], control: Control) -> None:
    """From SQLite, until nothing is left."""
    handlers = CountingHandlers()
    async with aclosing(SqliteStore(work["store"], history=work["history"], ledger=False)) as store:
        relay = relay_of(work, store, handlers)
        collect_rarely()
        await control.ready()
        await relay.run_until_empty()
        met = len(set(handlers.met))
        control.report(finished=time.monotonic(), met=met, repeats=len(handlers.met) - met)


async def to_rabbitmq(work: dict[str, Any], control: Control) -> None:
    """From PostgreSQL, until it is stopped."""
    rabbitmq: Transport = RabbitMQTransport(work["broker"], declare=False)
    if "confirmed" in work:
        rabbitmq = TimedTransport(rabbitmq)
    address = RabbitMQTransport.to(exchange="", routing_key=work["queue"])
    destination = Destination(address, body=work["body"], **work.get("destination", {}))
    async with (
        aclosing(PostgresStore(work["store"], history=work["history"], ledger=work["ledger"])) as store,
        aclosing(rabbitmq),
    ):
        await rabbitmq.ping()
        relay = relay_of(work, store, rabbitmq, destinations={"orders": destination}, routes=[Route(to=["orders"])])
        collect_rarely()
        await control.ready()
        running = asyncio.create_task(relay.run())
        await control.stopped()
        relay.stop()
        await running
        control.report()
        if isinstance(rabbitmq, TimedTransport):
            write_times(work["confirmed"], rabbitmq.confirmed)


def main() -> None:
    work = job()
    control = Control(profile=work["profile"])
    asyncio.run((to_handlers if work["store"].startswith("sqlite:") else to_rabbitmq)(work, control))


if __name__ == "__main__":
    main()
