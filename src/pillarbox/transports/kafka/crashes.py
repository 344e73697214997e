"""How often consumers crashed with a partition's messages in flight: the metadata of its committed offset says it.

Kafka counts no deliveries. So a consumer commits, before it delivers the first message of a partition, that it begins
at this offset. If it crashes before it commits a later offset, the next one reads that number: after two crashes it
delivers the messages from there on in quarantine, one at a time. Before each of these it commits that this message is
delivered alone, so the number of its own crashes is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

QUARANTINE_AFTER = 2
"""Crashes at one offset after which messages are quarantined."""
_MAX_DOUBLINGS = 10
_MAX_STARTS = 1_000
"""More are not counted; the next one must still be a different number, which can be committed."""
_MAX_ALONE = 20
"""The messages whose crashes are kept; metadata of an offset has at most 4,096 bytes by default."""
_METADATA = re.compile(r"pillarbox starts=(\d{1,9})(?: alone=(\d{1,19}:\d{1,9}(?:,\d{1,19}:\d{1,9})*))?", re.ASCII)


class CrashCounts(NamedTuple):
    """What the metadata of a committed offset says."""

    starts: int = 0
    """The consumers that began at this offset and did not get further, unless they left the group in order."""
    alone: Mapping[int, int] = {}
    """By offset: the consumers that received this message in quarantine and never acknowledged it."""

    @classmethod
    def parse(cls, metadata: str | None) -> CrashCounts:
        """Metadata of other clients counts nothing."""
        if (found := _METADATA.fullmatch(metadata or "")) is None:
            return cls()
        pairs = (one.split(":") for one in (found[2] or "").split(",") if one)
        return cls(min(int(found[1]), _MAX_STARTS), {int(offset): int(count) for offset, count in pairs})

    def __str__(self) -> str:
        """The metadata."""
        if not self.starts and not self.alone:
            return ""
        most = sorted(self.alone.items(), key=lambda one: one[1], reverse=True)[:_MAX_ALONE]
        alone = ",".join(f"{offset}:{count}" for offset, count in sorted(most))
        return f"pillarbox starts={self.starts}" + (f" alone={alone}" if alone else "")

    def quarantined(self, prefetch: int) -> int:
        """How many offsets from the first are quarantined. Those were in flight, or more: the first one may wait for a
        retry while later ones are processed. So each further crash doubles the number."""
        over = self.starts - QUARANTINE_AFTER
        return prefetch << min(over, _MAX_DOUBLINGS) if over >= 0 else 0
