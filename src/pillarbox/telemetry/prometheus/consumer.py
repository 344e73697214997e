"""What consumers announce, as metrics. One listener serves every consumer of a process; its name is the label."""

from __future__ import annotations

from typing import assert_never

from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
    SourceRestored,
    StatisticsFailed,
)
from pillarbox.telemetry.prometheus.client import WORK, CollectorRegistry, Counter, Gauge, Histogram


class ConsumerMetrics:
    """An observer for `Consumer(observers=[…])`; `registry` is what to serve."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """registry: default: one of its own, so that nothing collides."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._running = Gauge("inbox_consumers_running", "1 while it runs.", ["consumer"], registry=self.registry)
        self._events = Counter(
            "inbox_events",
            "Events by what became of them: handled, repeated, retried, dead or answer-lost.",
            ["consumer", "result"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "inbox_handling_duration_seconds",
            "From the receipt of an event to its ack, where it had its effect.",
            ["consumer"],
            buckets=WORK,
            registry=self.registry,
        )
        self._source_failures = Counter(
            "inbox_source_failures", "Times that nothing could be received.", ["consumer"], registry=self.registry
        )

    def __call__(self, observation: ConsumerObservation) -> None:
        """Count it."""
        consumer = observation.consumer
        match observation:
            case EventProcessed(seconds=seconds):
                self._events.labels(consumer, "handled").inc()
                self._duration.labels(consumer).observe(seconds)
            case DuplicateSkipped():
                self._events.labels(consumer, "repeated").inc()
            case HandlingFailed():
                self._events.labels(consumer, "retried").inc()
            case MessageDeadLettered():
                self._events.labels(consumer, "dead").inc()
            case AckFailed():
                self._events.labels(consumer, "answer-lost").inc()
            case SourceFailed():
                self._source_failures.labels(consumer).inc()
            case ConsumerStarted():
                self._running.labels(consumer).set(1)
            case ConsumerStopped():
                self._running.labels(consumer).set(0)
            case ConsumerStopRequested() | SourceRestored() | StatisticsFailed():
                return
            case _:
                assert_never(observation)
