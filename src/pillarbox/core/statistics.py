"""Statistics over time: each relay writes a sample of its deliveries and of the backlog every ten seconds.

They are meant for charts: the last seconds of a relay that crashed are missing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple

EVERY = 10.0
"""Seconds between two samples of a relay."""
KEPT = 86_400.0
"""Seconds that samples are kept."""
MOST = 20_000
"""The most samples that a query returns: the newest."""

COUNTED = 10_000
"""The most rows that a store counts exactly; beyond, it may estimate."""

LAGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
"""Upper bounds of the buckets, in seconds from recording to confirmation; one more bucket has no upper bound."""


@dataclass(slots=True, kw_only=True)
class DeliveryStatistics:
    """Outcomes of messages for one destination since the previous sample."""

    published: int = 0
    retried: int = 0
    dead: int = 0
    lags: list[int] = field(default_factory=lambda: [0] * (len(LAGS) + 1))
    """Published messages by lag: one count per bucket of `LAGS`."""

    def count_delivered(self, lag: float, count: int = 1) -> None:
        self.published += count
        self.lags[bisect_left(LAGS, lag)] += count

    def add(self, other: DeliveryStatistics) -> None:
        self.published += other.published
        self.retried += other.retried
        self.dead += other.dead
        self.lags = [mine + theirs for mine, theirs in zip(self.lags, other.lags, strict=True)]

    def lag_quantile(self, share: float) -> float | None:
        """The lag that `share` of the published messages did not exceed (0.99: p99); None if none were published."""
        reached = 0
        for bound, count in zip((*LAGS, float("inf")), self.lags, strict=True):
            reached += count
            if self.published and reached >= share * self.published:
                return bound
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogStatistics:
    """The backlog of the outbox at the time of a sample."""

    recorded: int
    """The last sequence number that was assigned: the difference of two samples is about how many were recorded."""
    backlog: int
    oldest: float | None
    dead: int


class Backlog(NamedTuple):
    """How much is pending."""

    messages: int
    """Messages that are not delivered yet; an estimate where there are more than `COUNTED`."""
    oldest: float | None
    """Seconds since the oldest of them became ready; None if none is pending."""
    dead: int
    """Dead letters; `COUNTED + 1` means that many or more."""
    recorded: int
    """The last sequence number that was assigned to a message."""
    unowned: bool
    """Whether a lane has no owner with a valid lease."""


OUTBOX = "*"
"""In place of a destination: a sample of the whole outbox."""


class Sample(NamedTuple):
    """Statistics of one relay at a time of the database's clock."""

    at: datetime
    relay: str
    destination: str
    values: DeliveryStatistics | BacklogStatistics

    @classmethod
    def read(cls, at: datetime, relay: str, destination: str, values: Mapping[str, Any]) -> Sample:
        return cls(
            at,
            relay,
            destination,
            BacklogStatistics(**values) if destination == OUTBOX else DeliveryStatistics(**values),
        )


def to_json(values: DeliveryStatistics | BacklogStatistics) -> dict[str, Any]:
    """The values as a JSON object, for `Sample.read`."""
    return {one.name: getattr(values, one.name) for one in fields(values)}
