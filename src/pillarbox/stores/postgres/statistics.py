"""Statistics: what relays report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.statistics import Backlog, BacklogStatistics, OutcomeStatistics, to_json
from pillarbox.stores.admin.inspection import SqlInspection
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.engine import PostgresEngine
from pillarbox.stores.postgres.statements import PostgresStatements


class PostgresStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._inspection = SqlInspection(PostgresEngine(connection, statements))

    async def add(self, relay: str, values: Mapping[str, OutcomeStatistics | BacklogStatistics]) -> None:
        texts = [json.dumps(to_json(one)) for one in values.values()]
        await self._connection.fetch(self._add, relay, list(values), texts)

    async def backlog(self) -> Backlog:
        return await self._inspection.backlog()
