"""How many messages may be unconfirmed at once, over all batches: first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Window:
    """A number of places. Nobody asks for more than there are."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, count: int) -> None:
        """Take `count` places, as soon as they are free and nobody waits who came earlier; `give` them back."""
        if not self._waiting and self._free >= count:
            self._free -= count
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self.give(0)
            else:
                self.give(count)
            raise

    def give(self, count: int) -> None:
        """Give places back."""
        self._free += count
        while self._waiting:
            wanted, turn = self._waiting[0]
            if not turn.cancelled():
                if wanted > self._free:
                    return
                self._free -= wanted
                turn.set_result(None)
            self._waiting.popleft()
