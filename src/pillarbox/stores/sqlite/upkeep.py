"""Deletes data past its retention period in small batches, the oldest first; never pending messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial

from pillarbox.core.store import Retention
from pillarbox.pruning import prune_each_kind
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqliteUpkeep:
    """See `pillarbox.core.store.Upkeep`."""

    def __init__(self, connection: Connection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._history = statements.get("prune_history")
        self._dead = statements.get("prune_dead")
        self._attempts = statements.get("prune_attempts")
        self._inbox = statements.get("prune_inbox")
        self._consumer_statistics = statements.get("prune_consumer_statistics")
        self._ledger = statements.get("prune_ledger")
        self._audit = statements.get("prune_audit")
        self._requests = statements.get("prune_requests")
        self._samples = statements.get("prune_statistics")

    async def prune(self, kept: Retention, *, most: int = 1000) -> int:
        ages = (
            (self._history, kept.history),
            (self._dead, kept.dead),
            (self._attempts, kept.attempts),
            (self._inbox, kept.inbox),
            (self._consumer_statistics, kept.inbox),
            (self._ledger, kept.ledger),
            (self._audit, kept.audit),
            (self._requests, kept.audit),
            (self._samples, kept.samples),
        )
        # One transaction for each kind: other writers get their turn in between.
        return await prune_each_kind(
            partial(self._connection.write, partial(_dropped, sql, {"seconds": seconds, "most": most}))
            for sql, seconds in ages
            if seconds is not None
        )


def _dropped(sql: str, given: Mapping[str, float], db: sqlite3.Connection) -> int:
    return db.execute(sql, given).rowcount
