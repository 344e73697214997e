"""How the outbox and the inbox fare, each from one snapshot."""

from __future__ import annotations

import json
import sqlite3

from pillarbox.core.overview import COUNTED, ConsumerView, LaneView, Overview, RelayView
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteInspection:
    """See `pillarbox.core.store.Inspection`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")
        self._consumers = statements.get("consumers")

    async def overview(self) -> Overview:
        def work(db: sqlite3.Connection) -> Overview:
            [(backlog, oldest, dead)] = db.execute(self._figures, {"counted": COUNTED}).fetchall()
            return Overview(
                backlog=backlog,
                oldest=oldest,
                exact=backlog <= COUNTED,
                dead=dead,
                lanes=[LaneView._make(row) for row in db.execute(self._lanes)],
                relays=[
                    RelayView._make([*row[:4], json.loads(row[4]), *row[5:8], bool(row[8])])
                    for row in db.execute(self._relays)
                ],
            )

        return await self._connection.read(work)

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        def work(db: sqlite3.Connection) -> list[ConsumerView]:
            rows = db.execute(self._consumers, {"limit": limit, "most": COUNTED + 1})
            return [ConsumerView._make(row) for row in rows]

        return await self._connection.read(work)
