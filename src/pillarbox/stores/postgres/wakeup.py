"""Wake-up by NOTIFY, on a connection of its own: the session listens, and holds a lock while the relay sleeps.

Producers try this advisory lock when they record, and notify where they do not get it. The lock costs no write, needs
no grant, and ends with the session of a relay that crashes.

Commits that notify run one after another in the whole database. So while many notifications arrive, the session lets go
of the lock for a moment, whatever the relay asked for; when it takes the lock again, it wakes the relay, because the
events in between caused no notification.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Any

from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import PostgresStatements

if TYPE_CHECKING:
    import asyncpg

MOST = 20
"""Notifications within `WINDOW` seconds, beyond which producers do without for a moment: 400 per second."""
WINDOW = 0.05
SHORTEST_PAUSE = 0.1
"""Seconds without notifications; twice as long each time as many arrive again right afterwards."""
LONGEST_PAUSE = 0.4


class PostgresWakeup:
    """See `pillarbox.core.store.Wakeup`. A sleep lasts until the relay asks for no more, or until the session ends."""

    def __init__(self, listener: Connection, statements: PostgresStatements) -> None:
        self._listener = listener
        self._channel = statements.names.channel
        self._lock = statements.get("sleep")
        self._unlock = statements.get("wake")
        self._limit = NotificationLimit()
        self._notified = asyncio.Event()
        self._asked = False
        """Whether the relay asked for notifications."""
        self._listening: asyncpg.Connection[Any] | None = None
        self._sleeping: asyncpg.Connection[Any] | None = None
        """The session that holds the lock. It is taken once: PostgreSQL counts how often a session holds a lock."""

    @property
    def notifies(self) -> bool:
        return self._sleeping is not None and not self._sleeping.is_closed()

    async def request(self, relay: str, seconds: float) -> None:
        if not seconds:
            await self._stop()
            return
        async with self._listener.open() as connection:
            await self._listen(connection)
            self._asked = True
            if not self._limit.pause_left(_now()):
                await self._sleep(connection)

    async def _stop(self) -> None:
        self._asked = False
        if self._sleeping is not None and not self._sleeping.is_closed():
            async with self._listener.open() as connection:
                await self._awake(connection)

    async def wait(self, seconds: float) -> bool:
        async with self._listener.open() as connection:
            await self._listen(connection)
            if self._limit.exceeded(_now()):
                await self._awake(connection)
                self._limit.begin_pause(_now())
                return True
        pause = self._limit.pause_left(_now()) or math.inf
        try:
            async with asyncio.timeout(min(seconds, pause)):
                await self._notified.wait()
        except TimeoutError:
            return pause <= seconds and await self._end_pause()
        self._notified.clear()
        return True

    async def _end_pause(self) -> bool:
        """Sleep again, if the relay still wants to; returns whether it does."""
        self._limit.end_pause(_now())
        if self._asked:
            async with self._listener.open() as connection:
                await self._sleep(connection)
        return self._asked

    async def _sleep(self, connection: asyncpg.Connection[Any]) -> None:
        if self._sleeping is not connection:
            await connection.fetch(self._lock)
            self._sleeping = connection

    async def _awake(self, connection: asyncpg.Connection[Any]) -> None:
        if self._sleeping is connection:
            await connection.fetch(self._unlock)
        self._sleeping = None

    async def _listen(self, connection: asyncpg.Connection[Any]) -> None:
        if self._listening is not connection:
            await connection.add_listener(self._channel, self._notify)
            self._listening = connection

    def _notify(self, _connection: object, backend: int, _channel: str, _payload: object) -> None:
        self._limit.count(_now(), backend)
        self._notified.set()


class NotificationLimit:
    """Whether notifications arrive too often, and how long to do without them."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=MOST + 1)
        self._backend = 0
        self._pause = SHORTEST_PAUSE
        self._until = 0.0
        self._ended = -math.inf

    def count(self, now: float, backend: int) -> None:
        """A notification arrived. Those of one session in a row count once: its commits do not wait for each other."""
        if backend != self._backend:
            self._latest.append(now)
            self._backend = backend

    def exceeded(self, now: float) -> bool:
        """Whether too many arrived just now. During a pause those of transactions in flight do not count."""
        return not self._until and len(self._latest) > MOST and now - self._latest[0] <= WINDOW

    def begin_pause(self, now: float) -> None:
        goes_on = now - self._ended <= 2 * WINDOW
        self._pause = min(2 * self._pause, LONGEST_PAUSE) if goes_on else SHORTEST_PAUSE
        self._until = now + self._pause

    def pause_left(self, now: float) -> float:
        """Seconds, more than 0 until `end_pause`; 0: there is none."""
        return max(self._until - now, 0.001) if self._until else 0.0

    def end_pause(self, now: float) -> None:
        self._until, self._ended = 0.0, now
        self._latest.clear()


def _now() -> float:
    return asyncio.get_running_loop().time()
