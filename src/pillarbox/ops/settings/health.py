"""From where on `/health` says DOWN."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.core.clock import seconds
from pillarbox.ops.settings.describing import key
from pillarbox.ops.settings.kinds import Span, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """When `/health` of a relay says DOWN."""

    max_backlog: int = key(Whole(0), "more events than this wait; `0` = any number may", default=10_000)
    max_age: str = key(Span(("forever",)), "the oldest event has waited for longer than this", default="5m")

    @property
    def most_waiting(self) -> int | None:
        """None: any number."""
        return self.max_backlog or None

    @property
    def longest_wait(self) -> float | None:
        """Seconds; None: for any time."""
        return None if self.max_age == "forever" else seconds(self.max_age)
