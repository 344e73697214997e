"""Statistics: what relays report, and the samples over time that operators read."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pillarbox.core.statistics import COUNTED, MOST, Backlog, Carried, Level, Sample, written
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresStatistics:
    """See `pillarbox.core.store.Statistics`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_statistics")
        self._recorded = statements.get("recorded_so_far")
        self._figures = statements.get("overview")
        self._lanes = statements.get("overview_lanes")
        self._relays = statements.get("overview_relays")

    async def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        texts = [json.dumps(written(one)) for one in figures.values()]
        await self._connection.fetch(self._add, relay, list(figures), texts)

    async def backlog(self) -> Backlog:
        [(messages, oldest, _, dead, _, _)] = await self._connection.fetch(self._figures, COUNTED, COUNTED)
        owners = [row[1] for row in await self._connection.fetch(self._lanes)]
        alive = {row[0] for row in await self._connection.fetch(self._relays) if row[3] > 0}
        [(recorded,)] = await self._connection.fetch(self._recorded)
        return Backlog(messages, oldest, dead, int(recorded), any(owner not in alive for owner in owners))


class PostgresSamples:
    """See `pillarbox.admin.admin.Samples`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._since = statements.get("statistics_since")

    async def since(self, seconds: float) -> list[Sample]:
        rows = await self._connection.fetch(self._since, seconds, MOST)
        return [Sample.read(at, relay, to, json.loads(figures)) for at, relay, to, figures in reversed(rows)]
