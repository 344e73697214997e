"""What a consumer announces: frozen values, like those of the relay. Logs and metrics are observers; so are tests.

`event_id` and `event_type` are '' if the message has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStarted:
    """A consumer starts to receive."""

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopRequested:
    """A consumer was asked to drain: it stops receiving and finishes what is in flight."""

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopped:
    """A consumer stopped; `drained` tells whether everything in flight was finished."""

    consumer: str
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProcessed:
    """An event was processed, and the transaction of its handler is committed."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateSkipped:
    """The inbox has a record of the event: the consumer skipped the duplicate."""

    consumer: str
    event_id: str
    event_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlingFailed:
    """Handling failed and was rolled back; the consumer retries after `delay` seconds."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    error: str
    delay: float
    counted: bool
    """Whether it counts as an attempt; False for a deferral, for example if the database is unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeadLettered:
    """The consumer sent a message to the dead letters of its queue."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AckFailed:
    """Acknowledging a message failed: the broker delivers it again."""

    consumer: str
    event_id: str
    event_type: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailed:
    """The source is unavailable; the consumer retries after `delay` seconds."""

    consumer: str
    error: str
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRestored:
    """The source is connected again after an outage of `seconds`, whether or not a message waits there."""

    consumer: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFailed:
    """Writing the consumer's statistics failed; the consumer keeps and retries them. Announced once per outage."""

    consumer: str
    error: str


ConsumerObservation = (
    ConsumerStarted
    | ConsumerStopRequested
    | ConsumerStopped
    | EventProcessed
    | DuplicateSkipped
    | HandlingFailed
    | MessageDeadLettered
    | AckFailed
    | SourceFailed
    | SourceRestored
    | StatisticsFailed
)
"""What a consumer reports to its observers."""
ConsumerObserver = Callable[[ConsumerObservation], None]
"""Must neither raise nor block."""
