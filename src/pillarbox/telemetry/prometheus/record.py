"""Metrics of the process that records events."""

from __future__ import annotations

from collections import Counter as Counts

from pillarbox.core.event import EventsRecorded
from pillarbox.telemetry.prometheus.client import MOST_EVENT_TYPES, Bounded, CollectorRegistry, Counter


class RecordMetrics:
    """An observer for `Outbox(observers=[…])`; `registry` is what to serve.

    An event counts when it is written, even if the transaction is rolled back afterwards.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """registry: default: a new one, so that names do not collide."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._event_type = Bounded(MOST_EVENT_TYPES)
        self._recorded = Counter(
            "outbox_recorded", "Recorded events, committed or not.", ["event_type"], registry=self.registry
        )

    def __call__(self, observation: EventsRecorded) -> None:
        """Count the recorded events by type."""
        for event_type, count in Counts(event.event_type for event in observation.events).items():
            self._recorded.labels(self._event_type(event_type)).inc(count)
