"""A relay of txoutbox, to RabbitMQ over aio-pika, because it has no broker adapter of its own."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from txoutbox import OutboxMessage, Relay, RelayConfig
from txoutbox.adapters.postgres import PostgresStorage

from benchmarks.workers.control import Control, job, run_on_loop
from benchmarks.workers.safe_publisher import open_exchange, publish


async def run(work: dict[str, Any]) -> None:
    storage = await PostgresStorage.connect(work["store"], delete_on_ack=work.get("delete", False))
    if work.get("prepare"):
        await storage.create_schema()
        await storage.close()
        return
    control = Control(profile=work["profile"])
    connection, exchange = await open_exchange(work["broker"])

    async def send(message: OutboxMessage) -> None:
        await publish(exchange, work["queue"], message.payload, str(message.id))

    config = RelayConfig(lease=timedelta(minutes=5), **work.get("config", {}))
    relay = Relay(storage, send, config=config)
    await control.ready()
    running = asyncio.create_task(relay.run())
    await control.stopped()
    relay.stop()
    await running
    control.report()
    await connection.close()
    await storage.close()


if __name__ == "__main__":
    work = job()
    run_on_loop(run(work), work)
