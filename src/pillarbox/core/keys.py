"""Keys that people ask about: which stand still until somebody decides, and which have the most to do."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

BEHIND = 1_000
"""Messages behind a blocked one that are counted."""
SAMPLE = 10_000
"""Messages that are looked at for the busiest keys: those that were recorded first."""


class BlockedKey(NamedTuple):
    """A key whose head was given up and stays until a person decides."""

    key: str | None
    destination: str
    event_id: str
    event_type: str
    error: str | None
    since: datetime
    behind: int
    """Messages that are known to wait for it; `BEHIND + 1` stands for that many or more."""


class HotKey(NamedTuple):
    """A key and how many of the messages looked at are its own."""

    key: str
    waiting: int


class Keys(Protocol):
    """What holds keys up, from a bounded number of rows."""

    async def blocked(self, *, limit: int = 100) -> list[BlockedKey]:
        """Keys that stand still, the newest trouble first."""
        ...

    async def hot(self, *, limit: int = 20) -> list[HotKey]:
        """The keys with the most messages among the first `SAMPLE` that wait."""
        ...
