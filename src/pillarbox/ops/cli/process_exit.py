"""End the process even if a task of the application ignores its cancellation."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any

CANCEL_TIMEOUT = 5.0
"""Seconds that cancelled tasks have to end."""


async def run_and_exit(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`, then exit with 0 even if a task, such as an async handler, ignores its cancellation.

    `asyncio.run` would wait for such a task without limit.
    """
    await work
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=CANCEL_TIMEOUT)
    if left:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
