"""What is recorded, as a metric of the process that records."""

from __future__ import annotations

from collections import Counter as Tally

from pillarbox.core.event import EventsRecorded
from pillarbox.telemetry.prometheus.client import MOST_EVENT_TYPES, Bounded, CollectorRegistry, Counter


class RecordMetrics:
    """An observer for `Outbox(observers=[…])`; `registry` is what to serve.

    An event counts when it is written, and also if the transaction is rolled back afterwards.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """registry: default: one of its own, so that nothing collides."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._event_type = Bounded(MOST_EVENT_TYPES)
        self._recorded = Counter(
            "outbox_recorded", "Events recorded, committed or not.", ["event_type"], registry=self.registry
        )

    def __call__(self, observation: EventsRecorded) -> None:
        """Count it."""
        for event_type, count in Tally(event.event_type for event in observation.events).items():
            self._recorded.labels(self._event_type(event_type)).inc(count)
