"""Metrics of a process of this service: those of the library, and those with the names of the guide.

outbox.published.count, outbox.failed.count, outbox.retry.count and outbox.backlog.gauge become
outbox_published_count_total, … in Prometheus; outbox.publish.duration is outbox_publish_duration_seconds.
"""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry, Counter, Gauge

from apps.ingestion.health import DATABASE_TIMEOUT
from apps.runtime.stores import Store
from pillarbox import PillarboxError
from pillarbox.observations import EventDeadLettered, EventDelivered, EventRetried, Observation
from pillarbox.telemetry.prometheus import ConsumerMetrics, RecordMetrics, RelayMetrics, StoreMetrics


class ServiceMetrics:
    """Metrics of `serve`: recorded, published and processed events, and the state of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registry = CollectorRegistry()
        self.record = RecordMetrics(self.registry)
        """For an outbox."""
        self.relay = (RelayMetrics(self.registry), GuideMetrics(self.registry))
        """For a relay."""
        self.consumer = ConsumerMetrics(self.registry)
        """For a consumer."""
        self._store_metrics = StoreMetrics(self.registry)
        self._backlog = Gauge("outbox_backlog_gauge", "Events that are not published yet.", registry=self.registry)

    async def refresh(self) -> None:
        """Read the metrics of the store; if it does not respond, `outbox_store_up` is 0."""
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT):
                seen = await self._store.admin.inspection.overview()
        except (PillarboxError, TimeoutError):
            self._store_metrics.show(None)
            self._backlog.set(float("nan"))
        else:
            self._store_metrics.show(seen)
            self._backlog.set(seen.backlog)


class GuideMetrics:
    """An observer of a relay that counts under the names of the guide."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._published = Counter("outbox_published_count", "Events published.", registry=registry)
        self._failed = Counter("outbox_failed_count", "Attempts that failed.", registry=registry)
        self._retries = Counter("outbox_retry_count", "Failed attempts that are retried.", registry=registry)

    def __call__(self, observation: Observation) -> None:
        match observation:
            case EventDelivered():
                self._published.inc()
            case EventRetried():
                self._failed.inc()
                self._retries.inc()
            case EventDeadLettered():
                self._failed.inc()
