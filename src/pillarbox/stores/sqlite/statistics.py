"""Statistics: what relays report, and the samples over time that operators read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from pillarbox.core.statistics import COUNTED, MOST, Backlog, Carried, Level, Sample, written
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements


class SqliteStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._recorded = statements.get("recorded_so_far")
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")

    async def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        rows = json.dumps([[destination, json.dumps(written(one))] for destination, one in figures.items()])
        given = {"relay": relay, "figures": rows}
        await self._connection.write(lambda db: db.execute(self._add, given).close())

    async def backlog(self) -> Backlog:
        def work(db: sqlite3.Connection) -> Backlog:
            [(messages, oldest, dead, _, _)] = db.execute(
                self._figures, {"counted": COUNTED, "most": COUNTED}
            ).fetchall()
            alive = {row[0] for row in db.execute(self._relays) if row[3] > 0}
            owners = [row[1] for row in db.execute(self._lanes)]
            [(recorded,)] = db.execute(self._recorded).fetchall()
            return Backlog(messages, oldest, dead, int(recorded), any(owner not in alive for owner in owners))

        return await self._connection.read(work)


class SqliteSamples:
    """See `pillarbox.admin.admin.Samples`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._since = statements.get("statistics_since")

    async def since(self, seconds: float) -> list[Sample]:
        given = {"seconds": seconds, "most": MOST}
        rows = await self._connection.read(lambda db: db.execute(self._since, given).fetchall())
        return [
            Sample.read(moment(at), relay, destination, json.loads(figures))
            for at, relay, destination, figures in reversed(rows)
        ]
