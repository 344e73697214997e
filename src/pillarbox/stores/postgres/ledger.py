"""What was sent before: one statement per lot."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresLedger:
    """See `pillarbox.core.store.Ledger`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._begin = statements.get("ledger_begin")

    async def begin(self, messages: Sequence[Resolved]) -> list[bool]:
        identities = [(message.event_id, destination) for message, destination in messages]
        rows = await self._connection.fetch(
            self._begin, [event_id for event_id, _ in identities], [destination for _, destination in identities]
        )
        sent = {(row["event_id"], row["destination"]) for row in rows}
        return [identity in sent for identity in identities]
