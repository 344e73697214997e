"""Keys that people ask about: which stand still, and which have the most to do."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from pillarbox.admin.listing import Position
from pillarbox.core.message import Held, Status

BEHIND = 1_000
"""Messages behind a head that are counted."""
LINES = 1_000
"""Lines behind a head that are looked at for those whose head waits for its retry."""
SAMPLE = 10_000
"""Messages that are looked at for the busiest keys: those that were recorded first."""

NEXT = 1_000
"""Messages that nobody has read yet, and dead letters of a key, that are looked at for what comes next in it."""


class BlockedKey(NamedTuple):
    """A key whose head holds it up: it was given up and stays, or it waits for its retry with others behind it."""

    key: str | None
    destination: str
    event_id: str
    event_type: str
    error: str | None
    since: datetime
    behind: int
    """Messages that are known to wait for it; `BEHIND + 1` stands for that many or more."""
    next_try: datetime | None = None
    """When the head is tried again; None: it stays until a person decides."""


class HotKey(NamedTuple):
    """A key and how many of the messages looked at are its own."""

    key: str
    waiting: int


class Head(NamedTuple):
    """The message that holds others of its key up."""

    event_id: str
    destination: str
    event_type: str
    held: Held | None
    """`BLOCKED`: it was given up; `ASIDE`: its destination takes nothing; None: it waits for its retry."""
    next_try: datetime | None


class Neighbour(NamedTuple):
    """An event beside another in its key."""

    recorded_at: datetime
    id: int
    destination: str
    event_id: str
    status: Status
    event_type: str


class Line(NamedTuple):
    """A place in a key, and what is around it."""

    head: Head | None
    """What whoever stands there waits for; None if nothing holds it up."""
    later: list[Neighbour]
    """What comes next, in order."""


class Keys(Protocol):
    """What holds keys up, from a bounded number of rows."""

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        """Keys that stand still: those that wait for a person, the newest trouble first; then, of so many `LINES`,
        those whose head waits for its retry, the longest first."""
        ...

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        """The keys with the most messages among the first `SAMPLE` that wait."""
        ...

    async def line(self, key: str, at: Position, *, limit: int = 5) -> Line:
        """What holds a place of this key up on the way to its destination, and the next few behind it: what waits for
        the same destination or for none yet, and whatever was delivered or given up."""
        ...
