"""Waiting for something that takes long: as long as it gets anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_LOOKS = 4
"""How often progress is looked for within the limit."""


@asynccontextmanager
async def patience(limit: float, progress: Callable[[], object]) -> AsyncIterator[None]:
    """`asyncio.timeout(limit)`, begun anew whenever `progress` answers something else than before.

    Raises TimeoutError once that has not happened for `limit` seconds, or a quarter longer.
    """
    loop = asyncio.get_running_loop()
    seen = progress()
    timer: asyncio.TimerHandle

    def look_later() -> None:
        nonlocal timer
        timer = loop.call_later(limit / _LOOKS, look)

    def look() -> None:
        nonlocal seen
        if (now := progress()) != seen and not bound.expired():
            seen = now
            bound.reschedule(loop.time() + limit)
        look_later()

    async with asyncio.timeout(limit) as bound:
        look_later()
        try:
            yield
        finally:
            timer.cancel()
