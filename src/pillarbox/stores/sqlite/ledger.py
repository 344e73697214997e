"""The ledger: at most two statements per batch."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.core.store import Ledger, LedgerKind, PriorSend, is_first, send_number
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.statements import SqliteStatements


def ledger_of(
    kind: LedgerKind, *, history: bool, connection: SqliteStoreConnection, statements: SqliteStatements
) -> Ledger | None:
    """What answers whether an event was sent before; nothing where it would be the history and none is kept."""
    if kind == "history":
        return SqliteHistoryLedger(connection, statements) if history else None
    return SqliteLedger(connection, statements) if kind else None


class SqliteLedger:
    """See `pillarbox.core.store.Ledger`."""

    records_sends = True

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._begin = statements.get("ledger_begin")
        self._before = statements.get("ledger_before")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = [(message.event_id, destination, send_number(message)) for message, destination in messages]
        given = {"messages": json.dumps(asked)}

        def work(db: sqlite3.Connection) -> dict[tuple[str, str], PriorSend]:
            rows = db.execute(self._before, given).fetchall()
            db.execute(self._begin, given)
            return {(event_id, destination): PriorSend(before) for event_id, destination, before in rows}

        known = await self._connection.write(work)
        return [known.get((event_id, destination), PriorSend.NOT_SENT) for event_id, destination, _ in asked]


class SqliteHistoryLedger:
    """See `pillarbox.core.store.Ledger`: the history answers, and nothing is written."""

    records_sends = False

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements) -> None:
        self._connection = connection
        self._find = statements.get("ledger_history")

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        asked = sorted({message.event_id for message, _ in messages if is_first(message)})

        def work(db: sqlite3.Connection) -> set[tuple[str, str]]:
            return set(db.execute(self._find, {"ids": json.dumps(asked)}).fetchall())

        sent = await self._connection.read(work) if asked else set[tuple[str, str]]()
        return [
            PriorSend.SENT if is_first(message) and (message.event_id, destination) in sent else PriorSend.NOT_SENT
            for message, destination in messages
        ]
