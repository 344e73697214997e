"""What an operator sees and asks for: dead letters are inserted again, waiting messages only requested."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from pillarbox.core.message import Status
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqlitePeople:
    """See `pillarbox.core.store.People`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._find = statements.get("find")
        self._dead = statements.get("dead")
        self._retry = statements.get("retry_dead")
        self._retry_audit = statements.get("retry_audit")
        self._ledger_again = statements.get("ledger_again")
        self._retry_remove = statements.get("retry_remove")
        self._retry_line_up = statements.get("retry_line_up")
        self._discard = statements.get("discard_dead")
        self._discard_audit = statements.get("discard_audit")
        self._ask = statements.get("ask")

    async def find(self, event_id: str) -> list[EventRow]:
        given = {"event_id": event_id}
        found = await self._connection.read(lambda db: db.execute(self._find, given).fetchall())
        rows = [EventRow._make(row) for row in found]
        return [
            row._replace(
                status=Status(row.status),
                next_retry_at=_time(row.next_retry_at),
                published_at=_time(row.published_at),
            )
            for row in rows
        ]

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        given = {"limit": limit, "before": before}
        found = await self._connection.read(lambda db: db.execute(self._dead, given).fetchall())
        return [DeadLetter._make([*facts, _time(failed), _time(died)]) for *facts, failed, died in found]

    async def retry(self, ids: Sequence[int], *, by: str = "") -> int:
        def work(db: sqlite3.Connection) -> int:
            db.execute(self._retry, {"ids": json.dumps(list(ids))})
            db.execute(self._retry_audit, {"by": by})
            db.execute(self._ledger_again)
            count = db.execute(self._retry_remove).rowcount
            db.execute(self._retry_line_up)
            return count

        return await self._connection.write(work)

    async def discard(self, ids: Sequence[int], *, by: str = "") -> int:
        given = {"ids": json.dumps(list(ids)), "by": by}

        def work(db: sqlite3.Connection) -> int:
            db.execute(self._discard_audit, given)
            return db.execute(self._discard, given).rowcount

        return await self._connection.write(work)

    async def ask(self, action: Action, event_id: str, destination: str, *, delay: float = 0, by: str = "") -> int:
        given = {"action": action, "event_id": event_id, "destination": destination, "delay": delay, "by": by}

        def work(db: sqlite3.Connection) -> int:
            # Fetched to the end: a statement that is still running would keep the transaction from committing.
            [(request_id,)] = db.execute(self._ask, given).fetchall()
            return int(request_id)

        return await self._connection.write(work)


def _time(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))
