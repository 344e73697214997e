"""How many calls of one handler may run beside those of the others: a share of its own, and what nobody else uses.

Pure arithmetic. A handler that hangs takes its own share and all of what is common, never another's: each of the others
keeps at least one call at a time, whatever hangs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def places(most: int, handlers: int) -> int:
    """How many calls may run at once: `most`, or one per handler where there are more handlers."""
    return max(most, handlers)


def room(name: str, running: Mapping[str, int], handlers: Collection[str], *, most: int) -> int:
    """How many more calls of the handler `name` may begin, given how many run of each of `handlers`; takes as long as
    there are handlers that run, whatever the number of those that do not."""
    count = max(1, len(handlers))
    own = max(1, most // (2 * count))
    common = places(most, count) - own * count
    borrowed = sum(max(0, calls - own) for other, calls in running.items() if other != name and other in handlers)
    return own + max(0, common - borrowed) - running.get(name, 0)
