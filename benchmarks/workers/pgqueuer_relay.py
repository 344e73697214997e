"""pgqueuer as an outbox: a job for each event, whose entrypoint publishes it over aio-pika."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.workers.control import Control, job, run_on_loop
from benchmarks.workers.safe_publisher import open_exchange, publish

ENTRYPOINT = "orders"


async def run(work: dict[str, Any]) -> None:
    database = await asyncpg.connect(work["store"])
    if work.get("prepare"):
        await Queries.from_asyncpg_connection(database).install()
        await database.close()
        return
    control = Control(profile=work["profile"])
    connection, exchange = await open_exchange(work["broker"])
    queuer = PgQueuer.from_asyncpg_connection(database)

    # By default a job whose entrypoint raises is deleted, which would lose the event.
    @queuer.entrypoint(ENTRYPOINT, on_failure="hold")
    async def send(given: Job) -> None:
        await publish(exchange, work["queue"], given.payload or b"", str(given.id))

    await control.ready()
    running = asyncio.create_task(queuer.run(**work.get("config", {})))
    await control.stopped()
    queuer.shutdown.set()
    await running
    control.report()
    await connection.close()
    await database.close()


if __name__ == "__main__":
    work = job()
    run_on_loop(run(work), work)
