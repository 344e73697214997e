"""How the places behind the transports fare: relays report, people steer, in one row per destination."""

from __future__ import annotations

import json
import sqlite3

from pillarbox.core.outcome import legible
from pillarbox.core.steering import KEEP, Forced, Keep, Steering, changes
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._report = statements.get("report_destination")
        self._steering = statements.get("destination_overrides")
        self._steer = statements.get("override_destination")
        self._audit = statements.get("override_audit")

    async def report(self, destination: str, *, error: str | None, next_try: float | None) -> None:
        text = None if error is None else legible(error)
        given = {"destination": destination, "error": text, "next_try": next_try}
        await self._connection.write(lambda db: db.execute(self._report, given).close())

    async def steering(self) -> list[Steering]:
        rows = await self._connection.read(lambda db: db.execute(self._steering).fetchall())
        return [Steering(name, bool(paused), *rest) for name, paused, *rest in rows]

    async def steer(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        changed = changes(paused=paused, breaker=breaker, rate_limit=rate_limit)
        given = {"destination": destination, "want": json.dumps(changed), "by": by}

        def work(db: sqlite3.Connection) -> None:
            db.execute(self._steer, given)
            db.execute(self._audit, given)

        if changed:
            await self._connection.write(work)
