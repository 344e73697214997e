"""Samples over time: what relays carried and how much lay there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.stats import MOST, Carried, Level, Sample, written
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.moments import moment
from pillarbox.stores.sqlite.statements import Statements


class SqliteStats:
    """See `pillarbox.core.stats.Stats`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._since = statements.get("statistics_since")
        self._recorded = statements.get("recorded_so_far")

    async def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        rows = json.dumps([[destination, json.dumps(written(one))] for destination, one in figures.items()])
        given = {"relay": relay, "figures": rows}
        await self._connection.write(lambda db: db.execute(self._add, given).close())

    async def since(self, seconds: float) -> list[Sample]:
        given = {"seconds": seconds, "most": MOST}
        rows = await self._connection.read(lambda db: db.execute(self._since, given).fetchall())
        return [
            Sample.read(moment(at), relay, destination, json.loads(figures))
            for at, relay, destination, figures in reversed(rows)
        ]

    async def recorded(self) -> int:
        return int((await self._connection.read(lambda db: db.execute(self._recorded).fetchall()))[0][0])
