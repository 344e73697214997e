"""A consumer whose handler blocks its event loop at an event; it runs in its own folder."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from pillarbox import Consumer, open_source
from pillarbox.inbox import ConsumedEvent
from tests.servers.waiting import wait_until

HERE = Path.cwd()


@asynccontextmanager
async def transaction() -> AsyncIterator[Any]:
    connection = await asyncpg.connect(os.environ["DATABASE"])
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


source = open_source(os.environ["BROKER"], os.environ["QUEUE"], group="billing", **json.loads(os.environ["OPTIONS"]))
consumer = Consumer(source, name="billing", transaction=transaction)


@consumer.on("*")
async def bill(connection: Any, event: ConsumedEvent) -> None:
    await connection.execute("INSERT INTO effect (event_id) VALUES ($1)", event.event_id)
    if event.event_id == "block":
        block()


def block() -> None:
    (HERE / "begun").touch()
    wait_until((HERE / "go-on").exists, bound=300, what="the test continues")
