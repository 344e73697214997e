"""How destinations are doing: relays report, operators override, in one row per destination."""

from __future__ import annotations

from pillarbox.core.outcome import MAX_DELAY, sanitize_error
from pillarbox.core.store import Override
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements


class PostgresDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._report = statements.get("report_destination")
        self._overrides = statements.get("destination_overrides")

    async def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        await self._connection.fetch(
            self._report,
            destination,
            None if error is None else sanitize_error(error),
            None if next_attempt is None else min(next_attempt, MAX_DELAY),
        )

    async def overrides(self) -> list[Override]:
        return [Override._make(row) for row in await self._connection.fetch(self._overrides)]
