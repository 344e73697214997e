"""Retention: whole days of history are dropped; all other data is deleted in small batches."""

from __future__ import annotations

from functools import partial

from pillarbox.core.store import Retention
from pillarbox.pruning import prune_each_kind
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.history import HistoryDays
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.retention import RetentionStatements


class MariaDBPruning:
    """See `pillarbox.core.store.Pruning`."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._days = HistoryDays(connection, statements)
        self._statements = RetentionStatements(statements, ("prune_requests", "audit"))

    async def prune(self, kept: Retention, *, limit: int = 1000) -> int:
        prunes = [partial(self._count, sql, age, limit) for sql, age in self._statements.with_ages(kept)]
        if kept.history is not None:
            prunes.insert(0, partial(self._days.drop, kept.history))
        return await prune_each_kind(prunes)

    async def _count(self, sql: str, age: float, limit: int) -> int:
        return (await self._connection.run(sql, {"age": age, "limit": limit})).affected
