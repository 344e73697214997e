"""How the places behind the transports fare: relays report, people steer, in one row per destination."""

from __future__ import annotations

import json

from pillarbox.core.outcome import LONGEST_DELAY, legible
from pillarbox.core.steering import KEEP, Forced, Keep, Steering, changes
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._report = statements.get("report_destination")
        self._steering = statements.get("destination_overrides")
        self._steer = statements.get("override_destination")

    async def report(self, destination: str, *, error: str | None, next_try: float | None) -> None:
        await self._connection.fetch(
            self._report,
            destination,
            None if error is None else legible(error),
            None if next_try is None else min(next_try, LONGEST_DELAY),
        )

    async def steering(self) -> list[Steering]:
        return [Steering._make(row) for row in await self._connection.fetch(self._steering)]

    async def steer(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        if changed := changes(paused=paused, breaker=breaker, rate_limit=rate_limit):
            await self._connection.fetch(self._steer, destination, json.dumps(changed), by)
