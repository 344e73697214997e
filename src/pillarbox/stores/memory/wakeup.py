"""The wake-up: every commit notifies every relay that waits, also in another thread's event loop."""

from __future__ import annotations

import asyncio

from pillarbox.stores.memory.tables import Tables, verb


class MemoryWakeup:
    """See `pillarbox.core.store.Wakeup`."""

    notifies = True

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        # A dict for its order: a simulation is to wake them in the same order every time.
        self._sleepers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._rung_since_doze = False

    def ring(self) -> None:
        """Wake everybody; called by a commit, in whatever thread that is."""
        with self._tables.lock:
            self._rung_since_doze = True
            for bell, loop in self._sleepers.items():
                loop.call_soon_threadsafe(bell.set)

    @verb
    def request(self, relay: str, seconds: float) -> None:
        if seconds:
            self._rung_since_doze = False

    async def wait(self, seconds: float) -> bool:
        bell = asyncio.Event()
        with self._tables.lock:
            if self._rung_since_doze:
                self._rung_since_doze = False
                return True
            self._sleepers[bell] = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                return await bell.wait()
        except TimeoutError:
            return False
        finally:
            with self._tables.lock:
                del self._sleepers[bell]
