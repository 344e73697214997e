"""While no transaction can be opened, an event stays in flight and is tried again here, a few seconds apart at most.

Sending it back to its source would make it wait longer with every try, and the events behind it would fail as well.
Nothing of the event was done, so nothing can happen twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.retry import Backoff
from pillarbox.inbox.consumed import ConsumedEvent
from pillarbox.inbox.effects import Effects, NotBegun

LONGEST = 60.0
"""Seconds that an event is held; then it goes back to its source. Brokers close a channel that answers too late."""


async def carry_out(
    effects: Effects,
    event: ConsumedEvent,
    *,
    failed: Callable[[NotBegun, float], None],
    stopping: asyncio.Event,
    clock: Clock,
    chance: Chance,
) -> bool:
    """`Effects.carry_out`, repeated until there is a transaction to work in.

    failed: told once why there is none, and how long the first pause is.
    Raises NotBegun when `stopping` is set, or when the event was held for long enough.
    """
    backoff, until, told = Backoff(chance), clock.monotonic() + LONGEST, False
    while True:
        try:
            return await effects.carry_out(event)
        except NotBegun as error:
            if stopping.is_set() or clock.monotonic() >= until:
                raise
            pause = backoff.next()
            if not told:
                failed(error, pause)
            told = True
        await clock.sleep(pause)
