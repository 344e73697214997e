"""What comes from a source; while nothing can be received, it is tried again after ever longer pauses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.core.source import Delivery, Source


async def deliveries(
    source: Source,
    *,
    failed: Callable[[UnavailableError, float], None],
    restored: Callable[[float], None],
    clock: Clock,
    chance: Chance,
) -> AsyncIterator[Delivery]:
    """Every delivery, without end; `failed` is told why there is none and how long the pause is, `restored` how many
    seconds the outage lasted that is over."""
    backoff = Backoff(chance)
    failed_at: float | None = None
    while True:
        try:
            if failed_at is not None:
                # `receive` returns with the first message, which may be hours after the outage.
                await source.connect()
                restored(clock.monotonic() - failed_at)
                failed_at = None
            delivery = await source.receive()
        except UnavailableError as error:
            if failed_at is None:
                failed_at = clock.monotonic()
            pause = backoff.next()
            failed(error, pause)
            await clock.sleep(pause)
            continue
        backoff.reset()
        yield delivery
