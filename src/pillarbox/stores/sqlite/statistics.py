"""Statistics: what relays report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.statistics import Backlog, BacklogStatistics, OutcomeStatistics, to_json
from pillarbox.stores.admin.inspection import SqlInspection
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.engine import SqliteEngine
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqliteStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._inspection = SqlInspection(SqliteEngine(connection, statements))

    async def add(self, relay: str, values: Mapping[str, OutcomeStatistics | BacklogStatistics]) -> None:
        rows = json.dumps([[destination, json.dumps(to_json(one))] for destination, one in values.items()])
        given = {"relay": relay, "statistics": rows}
        await self._connection.write(lambda db: db.execute(self._add, given).close())

    async def backlog(self) -> Backlog:
        return await self._inspection.backlog()
