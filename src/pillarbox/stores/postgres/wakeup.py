"""Wake-up by NOTIFY, on a connection of its own: the session listens, and holds a lock while the relay is idle.

Producers try this advisory lock when they record, and notify if they do not get it. The lock costs no write, needs
no grant, and ends with the session of a relay that crashes.

Commits that notify run one after another in the whole database. So while many notifications arrive, the session
releases the lock for a short time, whatever the relay asked for; when it holds the lock again, it wakes the relay,
because the events in between caused no notification.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Any

from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements

if TYPE_CHECKING:
    import asyncpg

MAX_NOTIFICATIONS = 20
"""Notifications within `LIMIT_SECONDS`, beyond which producers do not notify for a short time: 400 per second."""
LIMIT_SECONDS = 0.05
MIN_PAUSE = 0.1
"""Seconds without notifications; twice as long each time as many arrive again right afterwards."""
MAX_PAUSE = 0.4


class PostgresWakeup:
    """See `pillarbox.core.store.Wakeup`. The session holds the lock until the relay asks for no more, or until
    it ends."""

    def __init__(self, listener: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._listener = listener
        self._channel = statements.names.channel
        self._lock_statement = statements.get("hold_wakeup_lock")
        self._unlock_statement = statements.get("release_wakeup_lock")
        self._limit = NotificationLimit()
        self._notified = asyncio.Event()
        self._asked = False
        """Whether the relay asked for notifications."""
        self._listening: asyncpg.Connection[Any] | None = None
        self._lock_holder: asyncpg.Connection[Any] | None = None
        """The session that holds the lock. It is taken once: PostgreSQL counts how often a session holds a lock."""

    @property
    def notifies(self) -> bool:
        return self._lock_holder is not None and not self._lock_holder.is_closed()

    async def request(self, relay: str, seconds: float) -> None:
        if not seconds:
            await self._stop()
            return
        async with self._listener.open() as connection:
            await self._listen(connection)
            self._asked = True
            if not self._limit.pause_left(_now()):
                await self._hold_lock(connection)

    async def _stop(self) -> None:
        self._asked = False
        if self._lock_holder is not None and not self._lock_holder.is_closed():
            async with self._listener.open() as connection:
                await self._release_lock(connection)

    async def wait(self, seconds: float) -> bool:
        async with self._listener.open() as connection:
            await self._listen(connection)
            if self._limit.exceeded(_now()):
                await self._release_lock(connection)
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
        """Hold the lock again, if the relay still asks for notifications; returns whether it does."""
        self._limit.end_pause(_now())
        if self._asked:
            async with self._listener.open() as connection:
                await self._hold_lock(connection)
        return self._asked

    async def _hold_lock(self, connection: asyncpg.Connection[Any]) -> None:
        if self._lock_holder is not connection:
            await connection.fetch(self._lock_statement)
            self._lock_holder = connection

    async def _release_lock(self, connection: asyncpg.Connection[Any]) -> None:
        if self._lock_holder is connection:
            await connection.fetch(self._unlock_statement)
        self._lock_holder = None

    async def _listen(self, connection: asyncpg.Connection[Any]) -> None:
        if self._listening is not connection:
            await connection.add_listener(self._channel, self._notify)
            self._listening = connection

    def _notify(self, _connection: object, backend: int, _channel: str, _payload: object) -> None:
        self._limit.count(_now(), backend)
        self._notified.set()


class NotificationLimit:
    """Whether notifications arrive too often, and how long producers do not notify."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=MAX_NOTIFICATIONS + 1)
        self._backend = 0
        self._pause = MIN_PAUSE
        self._until = 0.0
        self._ended = -math.inf

    def count(self, now: float, backend: int) -> None:
        """A notification arrived. Those of one session in a row count once: its commits do not wait for each other."""
        if backend != self._backend:
            self._latest.append(now)
            self._backend = backend

    def exceeded(self, now: float) -> bool:
        """Whether too many arrived just now. During a pause those of transactions in flight do not count."""
        return not self._until and len(self._latest) > MAX_NOTIFICATIONS and now - self._latest[0] <= LIMIT_SECONDS

    def begin_pause(self, now: float) -> None:
        goes_on = now - self._ended <= 2 * LIMIT_SECONDS
        self._pause = min(2 * self._pause, MAX_PAUSE) if goes_on else MIN_PAUSE
        self._until = now + self._pause

    def pause_left(self, now: float) -> float:
        """Seconds, more than 0 until `end_pause`; 0: there is none."""
        return max(self._until - now, 0.001) if self._until else 0.0

    def end_pause(self, now: float) -> None:
        self._until, self._ended = 0.0, now
        self._latest.clear()


def _now() -> float:
    return asyncio.get_running_loop().time()
