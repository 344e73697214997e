"""Samples over time: what relays carried and how much lay there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.stats import MOST, Carried, Level, Sample, written
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresStats:
    """See `pillarbox.core.stats.Stats`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._since = statements.get("statistics_since")
        self._recorded = statements.get("recorded_so_far")

    async def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        texts = [json.dumps(written(one)) for one in figures.values()]
        await self._connection.fetch(self._add, relay, list(figures), texts)

    async def since(self, seconds: float) -> list[Sample]:
        rows = await self._connection.fetch(self._since, seconds, MOST)
        return [Sample.read(at, relay, to, json.loads(figures)) for at, relay, to, figures in reversed(rows)]

    async def recorded(self) -> int:
        return int((await self._connection.fetch(self._recorded))[0][0])
