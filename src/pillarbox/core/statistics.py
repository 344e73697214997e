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


def bucket(lag: float) -> int:
    """The index of the bucket of a lag."""
    return bisect_left(LAGS, lag)


@dataclass(slots=True, kw_only=True)
class Carried:
    """What became of messages for one destination since the sample before."""

    published: int = 0
    retried: int = 0
    dead: int = 0
    lags: list[int] = field(default_factory=lambda: [0] * (len(LAGS) + 1))
    """Of those published, how many took how long: one count per bucket of `LAGS`."""

    def delivered(self, lag: float, count: int = 1) -> None:
        self.published += count
        self.lags[bucket(lag)] += count

    def add(self, other: Carried) -> None:
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
class Level:
    """How much there was."""

    recorded: int
    """Numbers drawn so far: the difference of two samples is what was recorded in between, give or take a rollback."""
    backlog: int
    oldest: float | None
    dead: int


class Backlog(NamedTuple):
    """How much is pending."""

    messages: int
    """Messages that are not delivered yet; an estimate where there are more than `COUNTED`."""
    oldest: float | None
    """Seconds since the oldest of them could have been sent; None if there is none."""
    dead: int
    """Dead letters; `COUNTED + 1` stands for that many or more."""
    recorded: int
    """The last sequence number that was assigned to a message."""
    unowned: bool
    """Whether a lane has no owner whose lease runs."""


OUTBOX = "*"
"""In place of a destination: a sample of the outbox as a whole."""


class Sample(NamedTuple):
    """Figures of one relay, at the database's time."""

    at: datetime
    relay: str
    destination: str
    figures: Carried | Level

    @classmethod
    def read(cls, at: datetime, relay: str, destination: str, figures: Mapping[str, Any]) -> Sample:
        return cls(at, relay, destination, Level(**figures) if destination == OUTBOX else Carried(**figures))


def written(figures: Carried | Level) -> dict[str, Any]:
    """What `Sample.read` reads."""
    return {one.name: getattr(figures, one.name) for one in fields(figures)}
