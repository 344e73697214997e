"""Lets the settlement of one relay wait for a lock (PostgreSQL), so that the relay can be killed meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from pillarbox.ops.drill.database import DrillTables

TIMEOUT = 3.0
"""Seconds within which the settlement begins; less than the relay waits for a lock."""
END_TIMEOUT = 30.0
POLL = 0.02


class BlockedSettlement:
    """Locks the pending messages in the lanes of a relay while the block is open."""

    def __init__(self, tables: DrillTables, relay: str) -> None:
        self._tables = tables
        self._relay = relay
        self._locks = AsyncExitStack()
        self._connection: Any = None
        self._sessions: list[int] = []

    async def __aenter__(self) -> Self:
        producer = self._tables.producer()
        self._locks.push_async_callback(producer.aclose)
        self._connection = await self._locks.enter_async_context(producer.transaction())
        await self._tables.arun(self._connection, "lock_messages", self._relay)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._locks.aclose()

    async def wait(self) -> bool:
        """Wait until a session waits for these locks; False: none did in time."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            rows = await self._tables.arun(self._connection, "blocked_sessions")
            self._sessions = [int(row[0]) for row in rows]
            if self._sessions:
                return True
            await asyncio.sleep(POLL)
        return False

    async def release(self) -> None:
        """Release the locks, and wait until the sessions that waited for them have ended their statements."""
        await self._locks.aclose()
        until = time.monotonic() + END_TIMEOUT
        for session in self._sessions:
            while time.monotonic() < until:
                if not (await self._tables.read("is_working", session))[0][0]:
                    break
                await asyncio.sleep(POLL)
