"""How many letters lie in the dead-letter queues of brokers, asked for in the background.

What must stay true: nobody who asks for metrics or health waits for a broker. What a broker told is good for a while
after it has fallen silent, then it is known no more: an old figure would look like a good one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.ops.broker_queues import depths, known_queues
from pillarbox.ops.settings import Settings

EVERY = 30.0
"""Seconds between two looks: each costs a connection."""
GOOD = 4 * EVERY
"""Seconds for which the last answer of a broker stands."""
PATIENCE = 3.0
"""Seconds that a broker has to answer."""


class QueueDepths:
    """What is known of the queues that the settings name or that relays have met."""

    def __init__(self, settings: Settings, *, met: Callable[[], Collection[str]], clock: Clock | None = None) -> None:
        """met: destinations that relays have met by now."""
        self._settings = settings
        self._met = met
        self._clock = clock or SystemClock()
        self._known: dict[str, tuple[int, float]] = {}

    @property
    def known(self) -> Mapping[str, int]:
        """By the name of the queue; one that does not exist, or whose broker has been silent for long, is left out."""
        oldest = self._clock.monotonic() - GOOD
        return {name: letters for name, (letters, at) in self._known.items() if at > oldest}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Ask while the block is open."""
        asking = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def ask(self) -> None:
        """Ask once; raises nothing that a broker could be at fault for."""
        queues = known_queues(self._settings, met=self._met())
        for depth in await depths(self._settings, queues, within=PATIENCE):
            if depth.letters is not None:
                self._known[depth.queue.name] = depth.letters, self._clock.monotonic()
            elif depth.error is None:
                self._known.pop(depth.queue.name, None)

    async def _watch(self) -> None:
        while True:
            await self.ask()
            await self._clock.sleep(EVERY)
