"""Retention: whole days of history are dropped, the rest goes in small bites."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from pillarbox.core.store import Retention
from pillarbox.pruning import prune_each_kind
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import PostgresStatements


class PostgresUpkeep:
    """See `pillarbox.core.store.Upkeep`."""

    def __init__(self, connection: Connection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._drop = statements.get("drop_history_days")
        self._history = statements.get("prune_history")
        self._dead = statements.get("prune_dead")
        self._attempts = statements.get("prune_attempts")
        self._inbox = statements.get("prune_inbox")
        self._consumer_statistics = statements.get("prune_consumer_statistics")
        self._ledger = statements.get("prune_ledger")
        self._audit = statements.get("prune_audit")
        self._samples = statements.get("prune_statistics")

    async def prune(self, kept: Retention, *, most: int = 1000) -> int:
        kinds = (
            (self._history, kept.history),
            (self._dead, kept.dead),
            (self._attempts, kept.attempts),
            (self._inbox, kept.inbox),
            (self._consumer_statistics, kept.inbox),
            (self._ledger, kept.ledger),
            (self._audit, kept.audit),
            (self._samples, kept.samples),
        )
        prunes = [partial(self._count, sql, age, most) for sql, age in kinds if age is not None]
        if kept.history is not None:
            prunes.insert(0, partial(self._count, self._drop, timedelta(seconds=kept.history)))
        return await prune_each_kind(prunes)

    async def _count(self, sql: str, *arguments: object) -> int:
        [[count]] = await self._connection.fetch(sql, *arguments)
        return int(count)
