"""What an event waits behind in its key: the same on the page, in the API and on the command line."""

from __future__ import annotations

from pillarbox.core.browsing import EventDetail, Position, Story
from pillarbox.core.keys import Head, Line
from pillarbox.core.message import Status
from pillarbox.core.store import Store

NEIGHBOURS = 5
"""Events of the same key that are shown before one, and after it."""


def place(detail: EventDetail) -> Position:
    return Position(detail.recorded_at, detail.id, detail.destination)


async def line_of(store: Store, detail: EventDetail) -> Line:
    """What holds it up, if it waits, and what comes behind it; one statement where it has a key."""
    if detail.key is None:
        return Line(None, [])
    line = await store.keys.line(detail.key, place(detail), limit=NEIGHBOURS)
    return line if detail.status in (Status.PENDING, Status.PROCESSING) else line._replace(head=None)


async def heads(store: Store, story: Story) -> list[Head]:
    """What holds an event up on the way to each destination for which it waits."""
    return [head for one in story.events if (head := (await line_of(store, one)).head) is not None]
