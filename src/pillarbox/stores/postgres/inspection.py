"""How the outbox and the inbox fare, in a few short statements."""

from __future__ import annotations

import json

from pillarbox.admin.overview import ConsumerView, LaneView, Overview, RelayView
from pillarbox.core.row import LATELY
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresInspection:
    """See `pillarbox.admin.overview.Inspection`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")
        self._consumers = statements.get("list_consumers")

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        [figures] = await self._connection.fetch(self._figures, counted, COUNTED)
        backlog, oldest, exact, dead, blocked, oldest_event, recorded = figures
        lanes = await self._connection.fetch(self._lanes)
        return Overview(
            backlog=backlog,
            oldest=oldest,
            exact=exact,
            dead=dead,
            lanes=[LaneView._make(row) for row in lanes],
            relays=await self.relays(),
            blocked=blocked,
            oldest_event=oldest_event,
            recorded=recorded,
        )

    async def relays(self) -> list[RelayView]:
        rows = await self._connection.fetch(self._relays)
        return [RelayView._make([*row[:4], json.loads(row[4]), *row[5:]]) for row in map(tuple, rows)]

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        rows = await self._connection.fetch(self._consumers, limit, COUNTED + 1, LATELY)
        return [ConsumerView._make(row) for row in rows]
