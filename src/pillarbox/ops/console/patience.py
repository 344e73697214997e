"""Nobody waits for ever: after a while, an answer says that the store is slow.

The store has bounds of its own for each statement, but whoever stands in line waits for all of those before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from pillarbox.core.errors import StoreUnavailableError

T = TypeVar("T")

PATIENCE = 8.0
"""Seconds for a page: more than the five after which a store gives up on a lock and says so itself."""
LONG = 30.0
"""Seconds for what counts or examines much, in steps with bounds of their own."""


async def within(seconds: float, work: Awaitable[T]) -> T:
    """What `work` answers. Raises StoreUnavailableError if it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise StoreUnavailableError(
            f"the store did not answer within {seconds:g} s: it is overloaded, or somebody holds a lock; "
            "`pillarbox doctor` names the oldest transaction"
        ) from None
