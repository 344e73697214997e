"""Retention in small bites: the oldest goes first, and what waits is never touched."""

from __future__ import annotations

import sqlite3

from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteUpkeep:
    """See `pillarbox.core.store.Upkeep`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._history = statements.get("prune_history")
        self._dead = statements.get("prune_dead")
        self._attempts = statements.get("prune_attempts")
        self._receipts = statements.get("prune_receipts")

    async def prepare(self) -> None:
        """Nothing: the history is one table."""

    async def prune(
        self, *, history: float | None, dead: float | None, receipts: float | None = None, most: int = 1000
    ) -> int:
        # An attempt may still explain something as long as either of the two is kept.
        attempts = max(history, dead) if history is not None and dead is not None else None
        ages = (
            (self._history, history),
            (self._dead, dead),
            (self._attempts, attempts),
            (self._receipts, receipts),
        )

        def work(db: sqlite3.Connection) -> int:
            gone = 0
            for sql, seconds in ages:
                if seconds is not None:
                    gone += db.execute(sql, {"seconds": seconds, "most": most - gone}).rowcount
            return gone

        return await self._connection.write(work)
