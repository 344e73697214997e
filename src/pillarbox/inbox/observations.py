"""What a consumer announces: frozen values, like those of the relay. Logs and metrics are listeners; so are tests.

`event_id` and `event_type` are '' where a message does not say them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStarted:
    """A consumer begins to receive."""

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopRequested:
    """A consumer was asked to drain: it receives no more and finishes what it has in hand."""

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStopped:
    """A consumer is gone; `drained` tells whether everything in hand was finished."""

    consumer: str
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProcessed:
    """An event had its effect, and the effect is committed."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateSkipped:
    """An event came that had its effect before: it was skipped."""

    consumer: str
    event_id: str
    event_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlingFailed:
    """An event had no effect and comes again after `delay` seconds."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    error: str
    delay: float
    counted: bool
    """False: not the event's fault, for example no database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeadLettered:
    """An event was given up on and is with the dead letters."""

    consumer: str
    event_id: str
    event_type: str
    attempt: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AckFailed:
    """The broker could not be told what became of an event: it comes again."""

    consumer: str
    event_id: str
    event_type: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFailed:
    """Nothing can be received; it is tried again after `delay` seconds."""

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
    """What the consumer counted could not be written; it is kept and tried again. Told once, until it succeeds."""

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
ConsumerObserver = Callable[[ConsumerObservation], None]
"""Must neither raise nor block."""
