"""How the outbox fares, from one snapshot."""

from __future__ import annotations

import json
import sqlite3

from pillarbox.core.overview import COUNTED, LaneView, Overview, RelayView
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteInspection:
    """See `pillarbox.core.store.Inspection`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")

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
