"""Named points at which a relay under test kills its own process, to reproduce crashes.

A point does nothing until it is armed, which only the command line does. Then the process ends by SIGKILL, as by a
power cut, when it reaches the point for the given time. The drill watches all points, to freeze and kill a relay there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Literal, get_args

from pillarbox.core.errors import ConfigurationError

Point = Literal[
    "before-fetch",
    "after-fetch",
    "before-send",
    "after-send",
    "before-confirm",
    "after-confirm",
    "before-settle",
    "after-settle",
    "before-release",
    "after-release",
    "before-drain",
    "after-drain",
]
POINTS: tuple[str, ...] = get_args(Point)

armed: dict[str, int] = {}
"""Points that are armed, with the hits left; on the path of an event, call `hit` only if there are any."""
_watchers: list[Callable[[str], None]] = []


def arm(point: str, count: int = 1) -> None:
    """Kill the process at the `count`th hit of a point. Raises ConfigurationError for an unknown point."""
    if point not in POINTS:
        raise ConfigurationError(f"failpoint {point!r} does not exist; use one of {', '.join(POINTS)}")
    if count < 1:
        raise ConfigurationError(f"failpoint {point}: the count is {count}; use 1 or more")
    armed[point] = count


def watch(callback: Callable[[str], None]) -> None:
    """Call `callback` with the name of each point that this process reaches from now on."""
    _watchers.append(callback)
    for point in POINTS:
        armed.setdefault(point, sys.maxsize)  # never hit that often


def hit(point: Point) -> None:
    """Report that the relay reached a point."""
    for callback in _watchers:
        callback(point)
    if point in armed:
        armed[point] -= 1
        if armed[point] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
