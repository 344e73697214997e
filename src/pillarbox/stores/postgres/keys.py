"""Keys that stand still, and those with the most to do."""

from __future__ import annotations

from pillarbox.core.keys import BEHIND, LINES, SAMPLE, BlockedKey, HotKey
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresKeys:
    """See `pillarbox.core.keys.Keys`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._blocked = statements.get("keys_blocked")
        self._hot = statements.get("keys_hot")

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        return [BlockedKey._make(row) for row in await self._connection.fetch(self._blocked, limit, BEHIND, LINES)]

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        return [HotKey._make(row) for row in await self._connection.fetch(self._hot, limit, SAMPLE)]
