"""What many events are done to is counted first, and nobody waits for ever for that number."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from pillarbox.ops.console.visiting import Refused

T = TypeVar("T")

PATIENCE = 10.0
"""Seconds in which what something is about must be counted; each statement has a bound of its own."""


async def counted(work: Awaitable[T]) -> T:
    """What `work` counts or chooses. Raises Refused if that takes too long."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await work
    except TimeoutError:
        raise Refused(
            413, f"There is too much to be counted in {PATIENCE:g} s: narrow the filter, or use the command line."
        ) from None


def check_count(count: int, confirmed: object) -> None:
    """Raises Refused if it is not the number that was confirmed."""
    if str(count) != str(confirmed):
        raise Refused(409, f"Meanwhile it would be {count:,}. Go back, look again, and confirm that number.")
