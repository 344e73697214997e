"""What comes from a source; while nothing can be received, it is tried again after ever longer pauses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import Unavailable
from pillarbox.core.source import Delivery, Source

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


async def deliveries(
    source: Source, *, failed: Callable[[Unavailable, float], None], clock: Clock, chance: Chance
) -> AsyncIterator[Delivery]:
    """Every delivery, without end; `failed` is told why there is none and how long the pause is."""
    pause = FIRST_PAUSE
    while True:
        try:
            delivery = await source.receive()
        except Unavailable as error:
            failed(error, pause)
            await clock.sleep(pause * (0.5 + chance.random() / 2))
            pause = min(LONGEST_PAUSE, pause * 2)
            continue
        pause = FIRST_PAUSE
        yield delivery
