"""An event loop in a thread of its own: what runs there does not count among the tasks of a test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
BOUND = 10.0
"""Seconds within which the tasks of the loop must have ended."""


class Background:
    """Runs coroutines in its thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="receiver")

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.run(_finished())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


async def _finished() -> None:
    """Wait for the other tasks, which end because their connections were closed, and for those connections."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        async with asyncio.timeout(BOUND):
            await asyncio.wait(others)
    for _ in range(5):  # a transport that was aborted closes its socket in the next iterations
        await asyncio.sleep(0)
