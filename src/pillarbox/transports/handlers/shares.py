"""Divides the concurrent calls among handlers: each has a share of its own, and all share the rest.

A handler that hangs uses up its own share and the common rest, never the share of another: each of the others can run
at least one call at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def total_calls(most: int, handlers: int) -> int:
    """How many calls may run at once: `most`, or one per handler if there are more handlers."""
    return max(most, handlers)


def free_calls(name: str, running: Mapping[str, int], handlers: Collection[str], *, most: int) -> int:
    """How many more calls of the handler `name` may begin, given the running calls of each of `handlers`.

    The cost depends on the number of handlers that run, not on the number of all handlers.
    """
    count = max(1, len(handlers))
    own = max(1, most // (2 * count))
    common = total_calls(most, count) - own * count
    borrowed = sum(max(0, calls - own) for other, calls in running.items() if other != name and other in handlers)
    return own + max(0, common - borrowed) - running.get(name, 0)
