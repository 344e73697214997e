"""The depths of the brokers' dead-letter queues, queried in the background.

Invariants: a request for metrics or health never waits for a broker. If a broker is unavailable, its last value is kept
for a while and then dropped, because an old value would look like a current one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.ops.broker_queues import depths, known_queues
from pillarbox.ops.settings import Settings

_log = logging.getLogger("pillarbox.monitor")

INTERVAL = 30.0
"""Seconds between two queries: each opens a connection."""
MAX_AGE = 4 * INTERVAL
"""Seconds for which the last value of a broker is kept."""
QUERY_TIMEOUT = 3.0
"""Timeout of a broker query in seconds."""


class QueueDepths:
    """The depths of the queues that the settings name or that relays have sent to."""

    def __init__(
        self, settings: Settings, *, destinations: Callable[[], Collection[str]], clock: Clock | None = None
    ) -> None:
        """destinations: returns the destinations known to relays."""
        self._settings = settings
        self._destinations = destinations
        self._clock = clock or SystemClock()
        self._known: dict[str, tuple[int, float]] = {}

    @property
    def known(self) -> Mapping[str, int]:
        """Depth by queue name, without missing queues and without outdated values."""
        oldest = self._clock.monotonic() - MAX_AGE
        return {name: dead_letters for name, (dead_letters, at) in self._known.items() if at > oldest}

    @asynccontextmanager
    async def polling(self) -> AsyncIterator[None]:
        """Query periodically while the block is open."""
        polling = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            polling.cancel()
            await asyncio.wait([polling])

    async def query(self) -> None:
        """Query once; an unavailable broker raises nothing."""
        queues = known_queues(self._settings, destinations=self._destinations())
        for depth in await depths(self._settings, queues, within=QUERY_TIMEOUT):
            if depth.dead_letters is not None:
                self._known[depth.queue.name] = depth.dead_letters, self._clock.monotonic()
            elif depth.error is None:
                self._known.pop(depth.queue.name, None)

    async def _poll(self) -> None:
        while True:
            try:
                await self.query()
            except Exception as error:  # of an adapter: without this task, the depths would only disappear
                _log.warning("the depths of dead-letter queues cannot be read: %s", type(error).__name__)
            await self._clock.sleep(INTERVAL)
