"""Retention: deletes data past its retention period in small batches, the oldest first."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial

from pillarbox.core.store import Retention
from pillarbox.pruning import prune_each_kind
from pillarbox.stores.retention import RetentionStatements
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqlitePruning:
    """See `pillarbox.core.store.Pruning`."""

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._statements = RetentionStatements(statements, ("prune_requests", "audit"))

    async def prune(self, kept: Retention, *, limit: int = 1000) -> int:
        # One transaction for each kind: other writers get their turn in between.
        return await prune_each_kind(
            partial(self._connection.write, partial(_delete, sql, {"seconds": age, "most": limit}))
            for sql, age in self._statements.with_ages(kept)
        )


def _delete(sql: str, given: Mapping[str, float], db: sqlite3.Connection) -> int:
    return db.execute(sql, given).rowcount
