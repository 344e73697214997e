"""A lock that many tasks hold together, or one task holds alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ExclusiveLock:
    """A task that waits to hold it alone goes before tasks that come later."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._holders = 0
        self._alone = 0

    @asynccontextmanager
    async def taken(self, *, alone: bool) -> AsyncIterator[None]:
        """Hold the lock in the block; `alone`: after all other holders have left, and before others come."""
        if alone:
            self._alone += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not (self._holders if alone else self._alone))
                self._holders += 1
            try:
                yield
            finally:
                self._holders -= 1
        finally:
            if alone:
                self._alone -= 1
            async with self._changed:
                self._changed.notify_all()
