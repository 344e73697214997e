"""The wake-up: MariaDB has no notifications, so an idle relay polls for recorded events and operator requests.

It polls the ends of two indexes, which takes a fraction of a millisecond, less and less often while nothing arrives. An
event that commits after a later one is not seen that way: the relay's own polling finds it.
"""

from __future__ import annotations

import asyncio

from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.statements import MariaDBStatements

FIRST_POLL = 0.005
LONGEST_POLL = 0.05
GROWTH = 1.5


class MariaDBArrivals:
    """Whether events were recorded since the last fetch of ready messages.

    It compares with that fetch, not with the beginning of the wait: an event that commits in between wakes the relay.
    """

    def __init__(self, statements: MariaDBStatements) -> None:
        self._sql = statements.get("arrivals")
        self._known = (0, 0)

    def fetched(self, sequence: int) -> None:
        """A fetch has seen the message with this sequence."""
        message, request = self._known
        self._known = max(message, sequence), request

    async def has_new(self, connection: MariaDBStoreConnection) -> bool:
        """Whether events were recorded since the last fetch, or since the last call."""
        before = self._known
        message, request = await self._newest(connection)
        # The newest may be gone by now: only larger numbers are new.
        self._known = max(before[0], message), max(before[1], request)
        return self._known != before

    async def _newest(self, connection: MariaDBStoreConnection) -> tuple[int, int]:
        [(message, request)] = await connection.fetch(self._sql)
        return message or 0, request or 0


class MariaDBWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    notifies = False

    def __init__(self, connection: MariaDBStoreConnection, arrivals: MariaDBArrivals) -> None:
        self._connection = connection
        self._arrivals = arrivals

    async def request(self, relay: str, seconds: float) -> None:
        """Nothing: producers do not notify."""

    async def wait(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        pause = FIRST_POLL
        while not await self._arrivals.has_new(self._connection):
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * GROWTH, LONGEST_POLL)
        return True
