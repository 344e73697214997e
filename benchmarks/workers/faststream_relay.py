"""A relay of faststream-outbox, to RabbitMQ through FastStream's own broker, which is aio-pika."""

from __future__ import annotations

from typing import Any

from faststream.rabbit import RabbitBroker
from faststream_outbox import OutboxBroker, make_outbox_table
from faststream_outbox.annotations import OutboxMessage
from sqlalchemy import MetaData
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.workers.control import Control, job, run_on_loop

OUTBOX_QUEUE = "orders"


async def run(work: dict[str, Any]) -> None:
    engine = create_async_engine(
        work["store"].replace("postgresql://", "postgresql+asyncpg://"), **work.get("pool", {})
    )
    metadata = MetaData()
    table = make_outbox_table(metadata, table_name="outbox")
    if work.get("prepare"):
        async with engine.begin() as connection:
            await connection.run_sync(metadata.create_all)
        await engine.dispose()
        return
    control = Control(profile=work["profile"])
    outbox = OutboxBroker(engine, outbox_table=table, logger=None)
    rabbit = RabbitBroker(work["broker"], logger=None)

    @outbox.subscriber(OUTBOX_QUEUE, **work.get("config", {}))
    async def relay(body: bytes, message: OutboxMessage) -> None:
        await rabbit.publish(
            body,
            queue=work["queue"],
            mandatory=True,
            persist=True,
            content_type="application/json",
            message_id=str(message.raw_message.id),
        )

    await rabbit.connect()
    await control.ready()
    await outbox.start()
    await control.stopped()
    await outbox.stop()
    control.report()
    await rabbit.stop()
    await engine.dispose()


if __name__ == "__main__":
    work = job()
    run_on_loop(run(work), work)
