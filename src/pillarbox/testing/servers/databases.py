"""Databases with the tables of the outbox, one per test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from itertools import count

from pillarbox.schemes import open_store
from pillarbox.testing.servers.postgres import PostgresServer

_numbers = count(1)


@contextmanager
def outbox_database(server: PostgresServer) -> Iterator[str]:
    """The URL of a new database with the tables of the outbox; it is dropped when the block ends."""
    name = f"pillarbox_{next(_numbers)}"
    server.create_database(name)
    try:
        _apply_schema(server.url(name))
        yield server.url(name)
    finally:
        server.drop_database(name)


def _apply_schema(url: str) -> None:
    async def apply() -> None:
        async with aclosing(open_store(url)) as store:
            await store.schema.apply()

    # In a thread: the test may have an event loop that runs already.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(apply())).result()
