"""What commands share that open the store, do one thing and close it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pillarbox.core.store import Store
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_store

T = TypeVar("T")


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """What `work` makes of the store that the settings name."""

    async def run() -> T:
        store = open_store(Settings.from_environment().store)
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(run())
