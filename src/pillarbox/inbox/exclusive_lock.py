"""A lock with two modes: many tasks share it, or one task holds it exclusively."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ExclusiveLock:
    """A shared or exclusive lock. A task that waits for exclusive access precedes tasks that ask later."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._holders = 0
        self._exclusive = 0

    @asynccontextmanager
    async def taken(self, *, exclusive: bool) -> AsyncIterator[None]:
        """Hold the lock in the block; `exclusive`: after all other holders have released it, and before new ones."""
        if exclusive:
            self._exclusive += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not (self._holders if exclusive else self._exclusive))
                self._holders += 1
            try:
                yield
            finally:
                self._holders -= 1
        finally:
            if exclusive:
                self._exclusive -= 1
            async with self._changed:
                self._changed.notify_all()
