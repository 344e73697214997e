"""Waiting for a condition instead of a number of seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, cast, overload

T = TypeVar("T")

BOUND = 60.0
"""Seconds after which the wait fails: long enough for a busy machine."""


@overload
async def eventually(condition: Callable[[], Awaitable[T]], *, within: float = BOUND, pause: float = 0.01) -> T: ...


@overload
async def eventually(condition: Callable[[], T], *, within: float = BOUND, pause: float = 0.01) -> T: ...


async def eventually(condition: Callable[[], Awaitable[T] | T], *, within: float = BOUND, pause: float = 0.01) -> T:
    """Evaluate the condition, a plain or an async function, until its result is true, and return that result.

    within, pause: in seconds; the longest wait, and the pause between two evaluations. Raises AssertionError with the
    last result after `within` seconds.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not (result := await _evaluated(condition)):
        if loop.time() >= end:
            raise AssertionError(f"the condition was not met within {within} s; its last result was {result!r}")
        await asyncio.sleep(pause)
    return result


async def _evaluated(condition: Callable[[], Awaitable[T] | T]) -> T:
    result = condition()
    return cast(T, await result if isawaitable(result) else result)
