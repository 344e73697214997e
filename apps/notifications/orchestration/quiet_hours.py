"""When a user does not want to be disturbed: a stretch of the day on the clock of their own wall, every day.

An hour that happens twice in autumn is quiet twice. An end that does not happen in spring comes as late as if the clock
had not been moved: nobody is woken early.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """From `starts` until just before `ends`; over midnight where it starts later than it ends; equal means never."""

    starts: time
    ends: time

    def end(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """If it is quiet now: the moment when it no longer is, in UTC."""
        local = now.astimezone(zone)
        if not self._covers(local.time()):
            return None
        day = local.date() + ONE_DAY if local.time() >= self.ends else local.date()
        end = datetime.combine(day, self.ends, tzinfo=zone)
        if end.astimezone(UTC) <= now:
            end = end.replace(fold=1)  # the first of two such times is over
        return end.astimezone(UTC)

    def _covers(self, moment: time) -> bool:
        if self.starts <= self.ends:
            return self.starts <= moment < self.ends
        return moment >= self.starts or moment < self.ends
