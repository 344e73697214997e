"""What comes from a source; while nothing can be received, it is tried again after ever longer pauses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from pillarbox.core.backoff import Backoff
from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import Unavailable
from pillarbox.core.source import Delivery, Source


async def deliveries(
    source: Source, *, failed: Callable[[Unavailable, float], None], clock: Clock, chance: Chance
) -> AsyncIterator[Delivery]:
    """Every delivery, without end; `failed` is told why there is none and how long the pause is."""
    backoff = Backoff(chance)
    while True:
        try:
            delivery = await source.receive()
        except Unavailable as error:
            pause = backoff.next()
            failed(error, pause)
            await clock.sleep(pause)
            continue
        backoff.reset()
        yield delivery
