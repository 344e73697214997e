"""Counts of bulk actions, with a timeout, and their confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from pillarbox.ops.console.request import RequestError

T = TypeVar("T")

COUNT_TIMEOUT = 10.0
"""Seconds for counting; each statement has its own timeout."""


async def with_count_timeout(work: Awaitable[T]) -> T:
    """Return what `work` counts or selects. Raises RequestError if it takes too long."""
    try:
        async with asyncio.timeout(COUNT_TIMEOUT):
            return await work
    except TimeoutError:
        raise RequestError(
            413, f"Counting took longer than {COUNT_TIMEOUT:g} s: narrow the filter, or use the command line."
        ) from None


def check_count(count: int, confirmed: object) -> None:
    """Raises RequestError if the number differs from the confirmed one."""
    if str(count) != str(confirmed):
        raise RequestError(409, f"The number changed to {count:,}. Go back and confirm it again.")
