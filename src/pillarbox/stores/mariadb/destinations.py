"""How destinations are doing: relays report, operators override, in one row per destination."""

from __future__ import annotations

from pillarbox.core.outcome import MAX_DELAY, sanitize_error
from pillarbox.core.store import Override
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.lanes import microseconds
from pillarbox.stores.mariadb.statements import MariaDBStatements


class MariaDBDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._report = statements.get("report_destination")
        self._overrides = statements.get("destination_overrides")

    async def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        given = {
            "destination": destination,
            "error": None if error is None else sanitize_error(error),
            "next_attempt": None if next_attempt is None else microseconds(min(next_attempt, MAX_DELAY)),
        }
        await self._connection.run(self._report, given)

    async def overrides(self) -> list[Override]:
        rows = await self._connection.fetch(self._overrides)
        return [Override(name, bool(paused), *facts) for name, paused, *facts in rows]
