"""Counts of bulk actions, with a timeout, and their confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
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


def check_confirmed(count: int, digest: str, posted: Mapping[str, object], *, required: bool = False) -> None:
    """Raises RequestError if the number, or with the same number the events, differ from the confirmed ones.

    required: raise it also if the confirmation is missing.
    """
    if required and not {"count", "selection"} <= posted.keys():
        raise RequestError(400, "The confirmation is missing: open this address, and post its form.")
    if "count" in posted and str(count) != str(posted["count"]):
        raise RequestError(409, f"The number changed to {count:,}. Go back and confirm it again.")
    if "selection" in posted and digest != posted["selection"]:
        raise RequestError(409, "Other events match now, although as many as before. Go back and confirm them again.")
