"""The metrics of a store without a relay: backlog, age and dead letters are visible while no relay runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import seconds
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.monitor.checks import HealthCheckResult, HealthLimits, healthy, ready
from pillarbox.ops.monitor.http_server import address_of, open_port, served
from pillarbox.ops.monitor.pages import make_pages
from pillarbox.ops.monitor.queues import QueueDepths
from pillarbox.ops.monitor.snapshot import SnapshotCache
from pillarbox.ops.settings import Settings
from pillarbox.telemetry.prometheus import StoreMetrics
from pillarbox.telemetry.prometheus.process import OutboxRegistry, add_process_metrics


class StoreExporter:
    """The endpoints of one store. Opens the port on construction; raises ConfigurationError if that fails."""

    def __init__(self, settings: Settings, listen: str) -> None:
        self._settings = settings
        self._port = open_port(listen, called="--listen")
        self.address = address_of(self._port)

    @asynccontextmanager
    async def serve(self, store: AdminStore) -> AsyncIterator[None]:
        """Serve the pages while the block is open, then close the port. An unavailable store ends nothing."""
        health = self._settings.relay.health
        cache = SnapshotCache(store, counted=max(COUNTED, health.backlog_limit or 0))
        queues = QueueDepths(self._settings, destinations=lambda: cache.destinations)
        metrics = StoreMetrics()
        add_process_metrics(metrics.registry)
        limits = HealthLimits(
            backlog=health.backlog_limit, age=health.age_limit, allowed=seconds(self._settings.console.slo)
        )

        async def update() -> None:
            metrics.show((await cache.get()).overview, queues=queues.known)

        async def is_alive() -> HealthCheckResult:
            return HealthCheckResult(True, {"status": "UP"})

        async def is_ready() -> HealthCheckResult:
            return ready(await cache.get())

        async def is_healthy() -> HealthCheckResult:
            return healthy(await cache.get(), limits, queues=queues.known)

        registry = OutboxRegistry(metrics.registry, self._settings.store.outbox_name)
        pages = make_pages(registry, before=update, alive=is_alive, ready=is_ready, healthy=is_healthy)
        async with queues.polling(), served(pages, self._port):
            yield
