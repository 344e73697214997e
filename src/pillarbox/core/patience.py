"""Waiting for something that takes long: as long as it gets anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

_LOOKS = 4
"""How often progress is looked for within the limit."""


class Patience:
    """`asyncio.timeout(limit)`, begun anew whenever `progress` answers something else than before.

    Raises TimeoutError once that has not happened for `limit` seconds, or a quarter longer.
    """

    __slots__ = ("_bound", "_limit", "_loop", "_progress", "_seen", "_since", "_timer")

    def __init__(self, limit: float, progress: Callable[[], object]) -> None:
        self._limit = limit
        self._progress = progress

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._bound = asyncio.timeout(None)
        await self._bound.__aenter__()
        self._seen = self._progress()
        self._since = self._loop.time()
        self._look_later()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._bound.__aexit__(kind, error, trace)

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(self._limit / _LOOKS, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if (seen := self._progress()) != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since >= self._limit:
            self._bound.reschedule(now)
            return
        self._look_later()
