"""The end of a process whose application may hang."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any

GOODBYE = 5.0
"""Seconds for which tasks that were cancelled may take to end."""


async def ending_in_time(work: Coroutine[Any, Any, None]) -> None:
    """Do it, then end the process with 0 even if a task ignores its cancellation, as an async handler can:
    `asyncio.run` would wait for it for ever."""
    await work
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=GOODBYE)
    if left:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
