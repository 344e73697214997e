"""The quiet hours of a user: a daily interval in the user's time zone.

When the clock goes back in autumn, the repeated hour is quiet twice. When the clock goes forward in spring and skips
the end, quiet hours end as late as without the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """From `starts` until just before `ends`; crosses midnight if `starts` is later; equal times mean never."""

    starts: time
    ends: time

    def end(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """The end of the quiet hours in UTC; None if they are not now."""
        local = now.astimezone(zone)
        if not self._covers(local.time()):
            return None
        day = local.date() + ONE_DAY if local.time() >= self.ends else local.date()
        end = datetime.combine(day, self.ends, tzinfo=zone)
        if end.astimezone(UTC) <= now:
            end = end.replace(fold=1)  # of a repeated hour, take the second
        return end.astimezone(UTC)

    def _covers(self, moment: time) -> bool:
        if self.starts <= self.ends:
            return self.starts <= moment < self.ends
        return moment >= self.starts or moment < self.ends
