"""Who may be at work: many side by side, or one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Floor:
    """Whoever wants to be alone goes before those who come later."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._at_work = 0
        self._alone = 0

    @asynccontextmanager
    async def taken(self, *, alone: bool) -> AsyncIterator[None]:
        """A place on it; `alone`, once everybody else has left and while nobody else comes."""
        if alone:
            self._alone += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not (self._at_work if alone else self._alone))
                self._at_work += 1
            try:
                yield
            finally:
                self._at_work -= 1
        finally:
            if alone:
                self._alone -= 1
            async with self._changed:
                self._changed.notify_all()
