"""The wake-up: SQLite has no notifications, so a sleeping relay asks at intervals whether an event was recorded.

Not whether anybody has committed: a relay would be woken by every heartbeat, its own and those of others.
"""

from __future__ import annotations

import asyncio
import sqlite3

from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import SqliteStatements

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.05
GROWTH = 1.5


class Bell:
    """Whether anything has come since ready messages were last looked for; used on the store's thread only.

    It counts from that look, not from the beginning of the sleep: what commits in between rings too.
    """

    def __init__(self, statements: SqliteStatements) -> None:
        self._arrivals = statements.get("arrivals")
        self._known: str | None = None

    def heed(self, arrivals: str) -> None:
        """Everything up to these is known."""
        self._known = arrivals

    def rang(self, db: sqlite3.Connection) -> bool:
        """Did it ring since it was last heeded or asked?"""
        before = self._known
        [(self._known,)] = db.execute(self._arrivals).fetchall()
        return before is not None and self._known != before


class SqliteWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    notifies = False

    def __init__(self, connection: Connection, statements: SqliteStatements, bell: Bell) -> None:
        self._connection = connection
        self._bell = bell
        self._doze = statements.get("sleep")
        self._rouse = statements.get("wake")

    async def request(self, relay: str, seconds: float) -> None:
        sql = self._doze if seconds else self._rouse
        given = {"relay": relay, "seconds": seconds}
        await self._connection.write(lambda db: db.execute(sql, given).close())

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        pause = FIRST_PAUSE
        while not await self._connection.read(self._bell.rang):
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_PAUSE)
        return True
