"""The wake-up: SQLite has no notifications, so an idle relay polls for recorded events.

It does not poll for commits: every heartbeat, its own and those of other relays, would wake it up.
"""

from __future__ import annotations

import asyncio
import sqlite3

from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.statements import SqliteStatements

FIRST_POLL = 0.005
LONGEST_POLL = 0.05
GROWTH = 1.5


class SqliteArrivals:
    """Whether events were recorded since the last fetch of ready messages; used on the store's thread only.

    It compares with that fetch, not with the beginning of the wait: an event that commits in between wakes the relay.
    """

    def __init__(self, statements: SqliteStatements) -> None:
        self._sql = statements.get("arrivals")
        self._known: str | None = None

    def fetched(self, arrivals: str) -> None:
        """A fetch has seen everything up to these arrivals."""
        self._known = arrivals

    def has_new(self, db: sqlite3.Connection) -> bool:
        """Whether events were recorded since the last fetch, or since the last call."""
        before = self._known
        [(self._known,)] = db.execute(self._sql).fetchall()
        return before is not None and self._known != before


class SqliteWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    notifies = False

    def __init__(
        self, connection: SqliteStoreConnection, statements: SqliteStatements, arrivals: SqliteArrivals
    ) -> None:
        self._connection = connection
        self._arrivals = arrivals
        self._set_idle = statements.get("set_idle_until")
        self._clear_idle = statements.get("clear_idle")

    async def request(self, relay: str, seconds: float) -> None:
        sql = self._set_idle if seconds else self._clear_idle
        given = {"relay": relay, "seconds": seconds}
        await self._connection.write(lambda db: db.execute(sql, given).close())

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        pause = FIRST_POLL
        while not await self._connection.read(self._arrivals.has_new):
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_POLL)
        return True
