"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from datetime import datetime

from pillarbox.core.keys import BEHIND, LINES, SAMPLE, BlockedKey, HotKey
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteKeys:
    """See `pillarbox.core.keys.Keys`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._blocked = statements.get("keys_blocked")
        self._hot = statements.get("keys_hot")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        given = {"limit": limit, "most": BEHIND, "lines": LINES}
        rows = await self._connection.read(lambda db: db.execute(self._blocked, given).fetchall())
        return [
            BlockedKey._make(
                [*facts, datetime.fromisoformat(since), behind, next_try and datetime.fromisoformat(next_try)]
            )
            for *facts, since, behind, next_try in rows
        ]

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        given = {"limit": limit, "most": SAMPLE}
        rows = await self._connection.read(lambda db: db.execute(self._hot, given).fetchall())
        return [HotKey._make(row) for row in rows]
