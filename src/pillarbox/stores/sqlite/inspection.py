"""How the outbox and the inbox fare, each from one snapshot."""

from __future__ import annotations

import json
import sqlite3

from pillarbox.admin.overview import ConsumerView, LaneView, Overview, RelayView
from pillarbox.core.row import LATELY
from pillarbox.core.statistics import COUNTED
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements


class SqliteInspection:
    """See `pillarbox.admin.overview.Inspection`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")
        self._consumers = statements.get("list_consumers")

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        def work(db: sqlite3.Connection) -> Overview:
            given = {"counted": counted, "most": COUNTED}
            [(backlog, oldest, dead, blocked, oldest_event, recorded)] = db.execute(self._figures, given).fetchall()
            return Overview(
                backlog=backlog,
                oldest=oldest,
                exact=backlog <= counted,
                dead=dead,
                lanes=[LaneView._make(row) for row in db.execute(self._lanes)],
                relays=self._read_relays(db),
                blocked=blocked,
                oldest_event=oldest_event,
                recorded=int(recorded),
            )

        return await self._connection.read(work)

    async def relays(self) -> list[RelayView]:
        return await self._connection.read(self._read_relays)

    def _read_relays(self, db: sqlite3.Connection) -> list[RelayView]:
        return [
            RelayView._make([*row[:4], json.loads(row[4]), *row[5:8], bool(row[8]), row[9]])
            for row in db.execute(self._relays)
        ]

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        def work(db: sqlite3.Connection) -> list[ConsumerView]:
            rows = db.execute(self._consumers, {"limit": limit, "most": COUNTED + 1, "lately": LATELY})
            return [ConsumerView._make([*facts, at and moment(at)]) for *facts, at in rows]

        return await self._connection.read(work)
