"""The sends of one transport that are under way: a task each, ended together, and counted per address."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from pillarbox.core.transport import Address


class Sends:
    """`on_done` is told after each of them."""

    def __init__(self, *, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self.ended = False
        """Nothing may begin any more."""
        self.to: Counter[Address] = Counter()
        """How many messages are being sent to each address."""
        self.begun = 0
        """How many lots were handed to the transport so far."""

    @property
    def messages(self) -> int:
        """How many messages are being sent."""
        return self.to.total()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it in a task of its own."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def answered(self, address: Address, count: int = 1) -> None:
        """So many messages to this address are no longer being sent."""
        self.to[address] -= count
        if not self.to[address]:
            del self.to[address]

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def check(self) -> None:
        """Raise what went wrong in a send, if anything did."""
        if self._failure is not None:
            raise self._failure

    async def end(self) -> None:
        """Cancel all of them, and return when they have ended."""
        self.ended = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._on_done()
