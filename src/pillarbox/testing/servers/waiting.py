"""Waits for a condition with a timeout, in tests and processes without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE = 0.01


def wait_until(condition: Callable[[], bool], *, bound: float, what: str, pause: float = _PAUSE) -> None:
    """Return once the condition is true, evaluated every `pause` seconds; raise TimeoutError after `bound` seconds."""
    deadline = time.monotonic() + bound
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still waiting after {bound:g} s: {what}")
        time.sleep(pause)
