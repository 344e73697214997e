"""Retention: whole days of history are dropped, the rest goes in small bites."""

from __future__ import annotations

from datetime import timedelta

from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

DAYS_AHEAD = 7


class PostgresUpkeep:
    """See `pillarbox.core.store.Upkeep`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._make = statements.get("history_make")
        self._drop = statements.get("history_drop")
        self._history = statements.get("prune_history")
        self._dead = statements.get("prune_dead")
        self._attempts = statements.get("prune_attempts")
        self._receipts = statements.get("prune_receipts")

    async def prepare(self) -> None:
        await self._connection.fetch(self._make, DAYS_AHEAD)

    async def prune(
        self, *, history: float | None, dead: float | None, receipts: float | None = None, most: int = 1000
    ) -> int:
        gone = 0
        if history is not None:
            gone += (await self._connection.fetch(self._drop, timedelta(seconds=history)))[0][0]
            gone += (await self._connection.fetch(self._history, history, most))[0][0]
        if dead is not None:
            gone += (await self._connection.fetch(self._dead, dead, most))[0][0]
        if history is not None and dead is not None:
            gone += (await self._connection.fetch(self._attempts, max(history, dead), most))[0][0]
        if receipts is not None:
            gone += (await self._connection.fetch(self._receipts, receipts, most))[0][0]
        return gone
