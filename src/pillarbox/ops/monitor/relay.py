"""What a relay shows of itself, and of the store that it shares with the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from pillarbox.core.duration import seconds
from pillarbox.core.store import Store
from pillarbox.ops.broker_queues import depths, known_queues
from pillarbox.ops.monitor.judging import Answer, Limits, alive, healthy, ready
from pillarbox.ops.monitor.looking import Depths, Lookout
from pillarbox.ops.monitor.pages import Starlette, make_pages
from pillarbox.ops.monitor.serving import address_of, open_port, served
from pillarbox.ops.settings import Settings
from pillarbox.relay.relay import Relay
from pillarbox.telemetry.prometheus import MetricsListener, StoreMetrics


class RelayMonitor:
    """The pages of one relay. The port is open as soon as this is made; else ConfigurationError is raised."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._port = open_port(settings.relay.listen or "", called=settings.called("relay", "listen"))
        self.metrics = MetricsListener()
        """To be one of the relay's observers."""
        self.address = address_of(self._port)

    @asynccontextmanager
    async def shows(self, relay: Relay, store: Store) -> AsyncIterator[None]:
        """Serve the pages while the block is open, then close the port."""
        async with aclosing(store.beside()) as looked_at:
            lookout = Lookout(looked_at, depths=_depths(self._settings))
            async with served(self._pages(relay, lookout), self._port):
                yield

    def close(self) -> None:
        """For whoever has opened the port and found that there is nothing to show."""
        self._port.close()

    def _pages(self, relay: Relay, lookout: Lookout) -> Starlette:
        figures = StoreMetrics(self.metrics.registry)
        stall_limit = seconds(self._settings.relay.stall_limit)
        health = self._settings.relay.health
        limits = Limits(backlog=health.most_waiting, age=health.longest_wait)

        async def bring_up_to_date() -> None:
            seen = await lookout.look()
            figures.show(seen.overview, queues=seen.queues)

        async def is_alive() -> Answer:
            return alive(relay.silence, limit=stall_limit)

        async def is_ready() -> Answer:
            return ready(await lookout.look())

        async def is_healthy() -> Answer:
            return healthy(await lookout.look(), limits)

        return make_pages(
            self.metrics.registry, before=bring_up_to_date, alive=is_alive, ready=is_ready, healthy=is_healthy
        )


def _depths(settings: Settings) -> Depths | None:
    queues = known_queues(settings)

    async def ask() -> Mapping[str, int]:
        found = await depths(settings, queues)
        return {depth.queue.name: depth.letters for depth in found if depth.letters is not None}

    return ask if queues else None
