"""Statistics over time: relays write samples of their deliveries and of the backlog, consumers count by the hour.

They are meant for charts: the last seconds before a crash are missing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from pillarbox.core.outcome import DELIVERED, Dead, Decision, Retry

SAMPLE_INTERVAL = 10.0
"""Seconds between two samples of a relay."""
SAMPLE_RETENTION = 86_400.0
"""Seconds that samples are kept."""
MAX_SAMPLES = 20_000
"""The most samples that a query returns: the newest."""

COUNTED = 10_000
"""The most rows that a store counts exactly; beyond, it may estimate."""

LAGS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
"""Upper bounds of the buckets, in seconds from recording to confirmation; one more bucket has no upper bound."""


@dataclass(slots=True, kw_only=True)
class OutcomeStatistics:
    """Outcomes of messages for one destination since the previous sample."""

    published: int = 0
    retried: int = 0
    dead: int = 0
    copies: int = 0
    """Messages that were added because an event has further destinations."""
    lags: list[int] = field(default_factory=lambda: [0] * (len(LAGS) + 1))
    """Published messages by lag: one count per bucket of `LAGS`."""

    def count_delivered(self, lag: float, count: int = 1) -> None:
        self.published += count
        self.lags[bisect_left(LAGS, lag)] += count

    def add(self, other: OutcomeStatistics) -> None:
        self.published += other.published
        self.retried += other.retried
        self.dead += other.dead
        self.copies += other.copies
        self.lags = [mine + theirs for mine, theirs in zip(self.lags, other.lags, strict=True)]

    def lag_quantile(self, share: float) -> float | None:
        """The lag that `share` of the published messages did not exceed (0.99: p99); None if none were published.

        Within its bucket the lag is interpolated, as if the messages of a bucket were spread evenly. The last bucket
        has no upper bound: infinity.
        """
        wanted, reached = share * self.published, 0
        for lower, upper, count in zip((0.0, *LAGS), (*LAGS, float("inf")), self.lags, strict=True):
            if count and reached + count >= wanted:
                return upper if upper == float("inf") else lower + (upper - lower) * (wanted - reached) / count
            reached += count
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
    values: OutcomeStatistics | BacklogStatistics

    @classmethod
    def read(cls, at: datetime, relay: str, destination: str, values: Mapping[str, Any]) -> Sample:
        return cls(
            at,
            relay,
            destination,
            _known(BacklogStatistics, values) if destination == OUTBOX else _known(OutcomeStatistics, values),
        )


S = TypeVar("S", OutcomeStatistics, BacklogStatistics)


def _known(kind: type[S], values: Mapping[str, Any]) -> S:
    """Read the values that this release knows: a relay of the next release may write more."""
    return kind(**{one.name: values[one.name] for one in fields(kind) if one.name in values})


def to_json(values: OutcomeStatistics | BacklogStatistics) -> dict[str, Any]:
    """The values as a JSON object, for `Sample.read`."""
    return {one.name: getattr(values, one.name) for one in fields(values)}


class StatisticsCounter:
    """Counts the decisions that a relay wrote, by destination, until they are reported."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, OutcomeStatistics] = defaultdict(OutcomeStatistics)

    def count(self, decisions: Iterable[Decision], now: datetime) -> None:
        """Count decisions that were written."""
        recorded: defaultdict[str, list[datetime]] = defaultdict(list)
        for message, outcome, destination, _ in decisions:
            if outcome is DELIVERED:
                recorded[destination].append(message.recorded_at)
            elif isinstance(outcome, Retry):
                self._counts[destination].retried += 1
            elif isinstance(outcome, Dead):
                self._counts[destination].dead += 1
        for destination, times in recorded.items():
            counted = self._counts[destination]
            longest = bisect_left(LAGS, (now - min(times)).total_seconds())
            if bisect_left(LAGS, (now - max(times)).total_seconds()) == longest:  # as in most batches
                counted.published += len(times)
                counted.lags[longest] += len(times)
            else:
                for at in times:
                    counted.count_delivered((now - at).total_seconds())

    def count_split(self, destinations: Sequence[str]) -> None:
        """Count an event that was replaced by a message for each destination: all but the first are new messages."""
        for destination in destinations[1:]:
            self._counts[destination].copies += 1

    def collect(self) -> dict[str, OutcomeStatistics]:
        """Return the counts since the previous call, to be reported now."""
        collected, self._counts = dict(self._counts), defaultdict(OutcomeStatistics)
        return collected

    def put_back(self, collected: Mapping[str, OutcomeStatistics]) -> None:
        """Count again what could not be reported."""
        for destination, counted in collected.items():
            self._counts[destination].add(counted)


CONSUMER_STATISTICS_AGE = 86_400.0
"""Seconds of consumer statistics that listings show, by the hour."""


class ConsumerStatistics(NamedTuple):
    """Counts of a consumer since its previous write.

    The counts of the last seconds before a crash are lost; those of a write whose response was lost count twice.
    """

    consumer: str
    processed: int = 0
    """Processed events."""
    duplicates: int = 0
    """Duplicates, which were skipped."""
    failures: int = 0
    """Failed attempts that were counted; the event is redelivered."""
    dead_lettered: int = 0
    """Dead-lettered events."""
    last_error: str | None = None
    failed_ago: float | None = None
    """Seconds since an event last failed or was dead-lettered."""
