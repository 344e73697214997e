"""The ledger: one statement per batch."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Ledger, LedgerKind, PriorSend, is_first, send_number
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements


def ledger_of(
    kind: LedgerKind,
    *,
    history: bool,
    reading: PostgresStoreConnection,
    writing: PostgresStoreConnection,
    statements: PostgresStatements,
) -> Ledger | None:
    """What answers whether an event was sent before; nothing where it would be the history and none is kept."""
    if kind == "history":
        return PostgresHistoryLedger(reading, statements) if history else None
    return PostgresLedger(writing, statements) if kind else None


class PostgresLedger:
    """See `pillarbox.core.store.Ledger`."""

    records_sends = True

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._begin = statements.get("ledger_begin")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        identities = [(message.event_id, destination) for message, destination in messages]
        rows = await self._connection.fetch(
            self._begin,
            literal(event_id for event_id, _ in identities),
            literal(destination for _, destination in identities),
            literal(send_number(message) for message, _ in messages),
        )
        known = {(row["event_id"], row["destination"]): PriorSend(row["before"]) for row in rows}
        return [known.get(identity, PriorSend.NOT_SENT) for identity in identities]


class PostgresHistoryLedger:
    """See `pillarbox.core.store.Ledger`: the history answers, and nothing is written."""

    records_sends = False

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._find = statements.get("ledger_history")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = {message.event_id for message, _ in messages if is_first(message)}
        rows = await self._connection.fetch(self._find, list(asked)) if asked else []
        sent = {(row["event_id"], row["destination"]) for row in rows}
        return [
            PriorSend.SENT if is_first(message) and (message.event_id, destination) in sent else PriorSend.NOT_SENT
            for message, destination in messages
        ]
