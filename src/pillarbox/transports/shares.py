"""The shares of destinations in what a transport can do at once: calls of handlers, requests to receivers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

K = TypeVar("K")


def total_calls(limit: int, handlers: int) -> int:
    """How many calls may run at once: `limit`, or one per handler if there are more handlers."""
    return max(limit, handlers)


def free_calls(name: K, running: Mapping[K, int], handlers: Collection[K], *, limit: int) -> int:
    """How many more calls of the handler or receiver `name` may begin, given the running calls of each of `handlers`.

    One that hangs uses up its own share and the common rest, never the share of another: each of the others can run at
    least one call at a time. The cost depends on the number of running handlers, not of all.
    """
    count = max(1, len(handlers))
    own = max(1, limit // (2 * count))
    common = total_calls(limit, count) - own * count
    borrowed = sum(max(0, calls - own) for other, calls in running.items() if other != name and other in handlers)
    return own + max(0, common - borrowed) - running.get(name, 0)
