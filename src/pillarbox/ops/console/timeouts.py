"""Timeouts of requests: a slow store becomes an error response.

Each statement has its own timeout, but a request may wait for the statements of other requests first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from pillarbox.core.errors import StoreUnavailableError

T = TypeVar("T")

TIMEOUT = 8.0
"""Seconds for a page: longer than the five seconds after which a store reports a lock."""
LONG_TIMEOUT = 30.0
"""Seconds for counts and for the doctor, whose steps have timeouts of their own."""


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Return the result of `work`. Raises StoreUnavailableError if it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise StoreUnavailableError(
            f"the store did not respond within {seconds:g} s: it is overloaded, or a transaction holds a lock; "
            "`pillarbox doctor` names the oldest transaction"
        ) from None
