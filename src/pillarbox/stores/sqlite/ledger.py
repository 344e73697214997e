"""What was sent before: two statements per lot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from pillarbox.core.outcome import Resolved
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteLedger:
    """See `pillarbox.core.store.Ledger`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._begin = statements.get("ledger_begin")
        self._sent = statements.get("ledger_sent")

    async def begin(self, messages: Sequence[Resolved]) -> list[bool]:
        identities = [(message.event_id, destination) for message, destination in messages]
        given = {"messages": json.dumps(identities)}

        def work(db: sqlite3.Connection) -> set[tuple[str, str]]:
            db.execute(self._begin, given)
            return set(db.execute(self._sent, given).fetchall())

        sent = await self._connection.write(work)
        return [identity in sent for identity in identities]
