"""The ledger: two statements per batch, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Ledger, LedgerKind, PriorSend, is_first, send_number
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Steps
from pillarbox.stores.mariadb.driver import Rows
from pillarbox.stores.mariadb.statements import MariaDBStatements


def ledger_of(
    kind: LedgerKind,
    *,
    history: bool,
    reading: MariaDBStoreConnection,
    writing: MariaDBStoreConnection,
    statements: MariaDBStatements,
) -> Ledger | None:
    """What answers whether an event was sent before; nothing where it would be the history and none is kept."""
    if kind == "history":
        return MariaDBHistoryLedger(reading, statements) if history else None
    return MariaDBLedger(writing, statements) if kind else None


class MariaDBLedger:
    """See `pillarbox.core.store.Ledger`."""

    records_sends = True

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._before = statements.get("ledger_before")
        self._begin = statements.get("ledger_begin")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = [[message.event_id, destination, send_number(message)] for message, destination in messages]
        given = {"messages": asked}

        def steps() -> Steps[Rows]:
            before = (yield self._before, given).rows
            yield self._begin, given
            return before

        rows = await self._connection.transact(steps())
        known = {(event_id, destination): PriorSend(before) for event_id, destination, before in rows}
        return [known.get((message.event_id, destination), PriorSend.NOT_SENT) for message, destination in messages]


class MariaDBHistoryLedger:
    """See `pillarbox.core.store.Ledger`: the history answers, and nothing is written."""

    records_sends = False

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._find = statements.get("ledger_history")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = sorted({message.event_id for message, _ in messages if is_first(message)})
        rows: Rows = await self._connection.fetch(self._find, {"ids": asked}) if asked else ()
        sent = {(row[0], row[1]) for row in rows}
        return [
            PriorSend.SENT if is_first(message) and (message.event_id, destination) in sent else PriorSend.NOT_SENT
            for message, destination in messages
        ]
