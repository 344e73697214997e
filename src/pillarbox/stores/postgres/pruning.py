"""Retention: whole days of history are dropped; all other data is deleted in small batches."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from pillarbox.core.store import Retention
from pillarbox.pruning import prune_each_kind
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.retention import RetentionStatements


class PostgresPruning:
    """See `pillarbox.core.store.Pruning`."""

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._drop_days = statements.get("drop_history_days")
        self._statements = RetentionStatements(statements)

    async def prune(self, kept: Retention, *, limit: int = 1000) -> int:
        prunes = [partial(self._count, sql, age, limit) for sql, age in self._statements.with_ages(kept)]
        if kept.history is not None:
            prunes.insert(0, partial(self._count, self._drop_days, timedelta(seconds=kept.history)))
        return await prune_each_kind(prunes)

    async def _count(self, sql: str, *arguments: object) -> int:
        [[count]] = await self._connection.fetch(sql, *arguments)
        return int(count)
