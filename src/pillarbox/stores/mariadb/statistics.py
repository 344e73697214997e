"""Statistics: what relays report."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.statistics import Backlog, BacklogStatistics, OutcomeStatistics, to_json
from pillarbox.stores.admin.inspection import SqlInspection
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.engine import MariaDBEngine
from pillarbox.stores.mariadb.statements import MariaDBStatements


class MariaDBStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._inspection = SqlInspection(MariaDBEngine(connection, statements))

    async def add(self, relay: str, values: Mapping[str, OutcomeStatistics | BacklogStatistics]) -> None:
        texts = [[destination, json.dumps(to_json(one))] for destination, one in values.items()]
        await self._connection.run(self._add, {"relay": relay, "values": texts})

    async def backlog(self) -> Backlog:
        return await self._inspection.backlog()
