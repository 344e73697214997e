"""Named points at which a relay under test dies: where a crash hurts most, reproduced at will.

Inert until somebody arms one, and only the command line does, when it is told to; then the process ends as by a power
cut when that point is reached for the given time.
"""

from __future__ import annotations

import os
import signal
from typing import Literal, get_args

from pillarbox.core.errors import ConfigurationError

Point = Literal[
    "before-read",
    "after-read",
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

_hits_left: dict[str, int] = {}


def arm(point: str, count: int = 1) -> None:
    """Die at the `count`th hit of a point. Raises ConfigurationError for one that does not exist."""
    if point not in POINTS:
        raise ConfigurationError(f"there is no failpoint {point!r}; there are {', '.join(POINTS)}")
    if count < 1:
        raise ConfigurationError(f"failpoint {point}: it is hit for the first time at 1, not at {count}")
    _hits_left[point] = count


def hit(point: Point) -> None:
    """The relay came by this point."""
    if _hits_left and point in _hits_left:
        _hits_left[point] -= 1
        if _hits_left[point] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
