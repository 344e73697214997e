"""Metrics of consumers. One observer serves every consumer of a process; the label is the consumer's name."""

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
        """registry: default: a new one, so that names do not collide."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._running = Gauge(
            "inbox_consumers_running", "1 while the consumer runs.", ["consumer"], registry=self.registry
        )
        self._events = Counter(
            "inbox_events",
            "Events by result: processed, duplicate, retried, dead_lettered or ack_failed.",
            ["consumer", "result"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "inbox_handling_duration_seconds",
            "Time from receiving a processed event to its acknowledgement.",
            ["consumer"],
            buckets=WORK,
            registry=self.registry,
        )
        self._source_failures = Counter(
            "inbox_source_failures", "Times that receiving failed.", ["consumer"], registry=self.registry
        )

    def __call__(self, observation: ConsumerObservation) -> None:
        """Count the observation."""
        consumer = observation.consumer
        match observation:
            case EventProcessed(seconds=seconds):
                self._events.labels(consumer, "processed").inc()
                self._duration.labels(consumer).observe(seconds)
            case DuplicateSkipped():
                self._events.labels(consumer, "duplicate").inc()
            case HandlingFailed():
                self._events.labels(consumer, "retried").inc()
            case MessageDeadLettered():
                self._events.labels(consumer, "dead_lettered").inc()
            case AckFailed():
                self._events.labels(consumer, "ack_failed").inc()
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
