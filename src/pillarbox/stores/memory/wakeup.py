"""The wake-up: every commit notifies every relay that waits, also in another thread's event loop."""

from __future__ import annotations

import asyncio

from pillarbox.stores.memory.tables import Tables, atomic


class MemoryWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    notifies = True

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # A dict, because it is ordered: a simulation must wake them in the same order every time.
        self._sleepers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._notified = False

    def notify(self) -> None:
        """Wake all relays; called by a commit, in any thread."""
        with self._tables.lock:
            self._notified = True
            for event, loop in self._sleepers.items():
                loop.call_soon_threadsafe(event.set)

    @atomic
    def request(self, relay: str, seconds: float) -> None:
        if seconds:
            self._notified = False

    async def wait(self, seconds: float) -> bool:
        event = asyncio.Event()
        with self._tables.lock:
            if self._notified:
                self._notified = False
                return True
            self._sleepers[event] = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                return await event.wait()
        except TimeoutError:
            return False
        finally:
            with self._tables.lock:
                del self._sleepers[event]
