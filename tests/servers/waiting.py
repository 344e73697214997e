"""The one place where tests wait on a clock, and then for a fact with a bound, never for a while."""

import time
from collections.abc import Callable

_PAUSE = 0.01


def wait_until(condition: Callable[[], bool], *, bound: float, what: str) -> None:
    """Returns as soon as the condition holds; TimeoutError naming `what` after `bound` seconds."""
    deadline = time.monotonic() + bound
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"still waiting after {bound:g} s: {what}")
        time.sleep(_PAUSE)
