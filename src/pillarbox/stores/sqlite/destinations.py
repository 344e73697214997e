"""How destinations are doing: relays report, operators override, in one row per destination."""

from __future__ import annotations

from pillarbox.core.outcome import sanitize_error
from pillarbox.core.store import Override
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqliteDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._report = statements.get("report_destination")
        self._overrides = statements.get("destination_overrides")

    async def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        text = None if error is None else sanitize_error(error)
        given = {"destination": destination, "error": text, "next_attempt": next_attempt}
        await self._connection.write(lambda db: db.execute(self._report, given).close())

    async def overrides(self) -> list[Override]:
        rows = await self._connection.read(lambda db: db.execute(self._overrides).fetchall())
        return [Override(name, bool(paused), *rest) for name, paused, *rest in rows]
