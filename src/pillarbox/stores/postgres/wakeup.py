"""The doorbell: LISTEN on a connection of its own; whoever sleeps says until when, and looks again by himself."""

from __future__ import annotations

import asyncio

from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    def __init__(self, connection: Connection, listener: Connection, statements: Statements) -> None:
        self._connection = connection
        self._listener = listener
        self._channel = statements.names.channel
        self._doze = statements.get("doze")
        self._rung = asyncio.Event()
        self._listening: object = None

    async def doze(self, relay: str, seconds: float) -> None:
        await self._listen()
        await self._connection.fetch(self._doze, relay, seconds)

    async def rouse(self, relay: str) -> None:
        await self._connection.fetch(self._doze, relay, None)

    async def wait(self, seconds: float) -> bool:
        await self._listen()
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def _listen(self) -> None:
        async with self._listener.open() as connection:
            if self._listening is not connection:
                await connection.add_listener(self._channel, self._ring)
                self._listening = connection

    def _ring(self, *_: object) -> None:
        self._rung.set()
