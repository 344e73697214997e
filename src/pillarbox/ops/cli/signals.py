"""Stopping a process that works until it is told to.

The first SIGTERM or SIGINT drains; from then on the system's own answer to a signal is in force, so that a second one
ends the process at once, whatever its event loop is doing.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` in the running event loop at the first signal."""
    loop = asyncio.get_running_loop()

    def heard(_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

    for number in SIGNALS:
        signal.signal(number, heard)
