"""The HTTP endpoints of a relay, with metrics of the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import seconds
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.monitor.checks import HealthCheckResult, HealthLimits, alive, healthy, ready
from pillarbox.ops.monitor.http_server import address_of, open_port, served
from pillarbox.ops.monitor.pages import Starlette, make_pages
from pillarbox.ops.monitor.queues import QueueDepths
from pillarbox.ops.monitor.snapshot import SnapshotCache
from pillarbox.ops.settings import Settings
from pillarbox.relay.relay import Relay
from pillarbox.telemetry.prometheus import RelayMetrics, StoreMetrics
from pillarbox.telemetry.prometheus.process import OutboxRegistry, add_process_metrics


class RelayMonitor:
    """The endpoints of one relay. Opens the port on construction; raises ConfigurationError if that fails."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._port = open_port(settings.relay.listen or "", called=settings.called("relay", "listen"))
        self.metrics = RelayMetrics()
        """Pass it to the relay as an observer."""
        self.address = address_of(self._port)

    @asynccontextmanager
    async def serve(self, relay: Relay, store: AdminStore) -> AsyncIterator[None]:
        """Serve the pages while the block is open, then close the port."""
        async with aclosing(store.clone()) as store_view:
            # If a store cannot estimate, a limit above the default count could never be exceeded.
            counted = max(COUNTED, self._settings.relay.health.backlog_limit or 0)
            cache = SnapshotCache(store_view, counted=counted)
            queues = QueueDepths(self._settings, destinations=lambda: cache.destinations)
            pages = self._pages(relay, cache, queues)
            async with queues.polling(), served(pages, self._port):
                yield

    def close(self) -> None:
        """Close the port without serve."""
        self._port.close()

    def _pages(self, relay: Relay, cache: SnapshotCache, queues: QueueDepths) -> Starlette:
        store_metrics = StoreMetrics(self.metrics.registry)
        add_process_metrics(self.metrics.registry)
        stall_limit = seconds(self._settings.relay.config.stall_limit)
        health = self._settings.relay.health
        limits = HealthLimits(
            backlog=health.backlog_limit, age=health.age_limit, allowed=seconds(self._settings.console.slo)
        )

        async def update_store_metrics() -> None:
            snapshot = await cache.get()
            store_metrics.show(snapshot.overview, queues=queues.known)

        async def is_alive() -> HealthCheckResult:
            return alive(relay.silence, limit=stall_limit)

        async def is_ready() -> HealthCheckResult:
            return ready(await cache.get(), relay.waits_for, stalled=relay.stalled)

        async def is_healthy() -> HealthCheckResult:
            return healthy(await cache.get(), limits, queues=queues.known)

        registry = OutboxRegistry(self.metrics.registry, self._settings.store.outbox_name)
        return make_pages(registry, before=update_store_metrics, alive=is_alive, ready=is_ready, healthy=is_healthy)
