"""Stop a long-running process on a signal.

The first SIGTERM or SIGINT drains and restores the default action of both signals, so that a second one ends the
process at once, even if its event loop is blocked.
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

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

    for number in SIGNALS:
        signal.signal(number, on_signal)
