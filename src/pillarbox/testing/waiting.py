"""Waiting for facts instead of seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

BOUND = 60.0
"""Seconds after which a fact that should be near is given up on: long enough for a machine that does much else."""


async def eventually(look: Callable[[], Awaitable[T]], *, within: float = BOUND, pause: float = 0.01) -> T:
    """Look again and again until the answer is true in the sense of Python, and return it.

    Raises AssertionError with the last answer after `within` seconds.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not (answer := await look()):
        if loop.time() >= end:
            raise AssertionError(f"waited {within} s in vain; the last answer was {answer!r}")
        await asyncio.sleep(pause)
    return answer
