"""The HTTP endpoints of a consumer. A consumer has no store to check; its metrics show failing transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pillarbox.inbox import Consumer
from pillarbox.inbox.observations import (
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    SourceFailed,
    SourceRestored,
)
from pillarbox.ops.monitor.checks import HealthCheckResult
from pillarbox.ops.monitor.http_server import address_of, open_port, served
from pillarbox.ops.monitor.pages import make_pages
from pillarbox.telemetry.prometheus import ConsumerMetrics
from pillarbox.telemetry.prometheus.process import add_process_metrics


class ConsumerState:
    """An observer that keeps the state of a consumer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._ready = False
        self._last_error = ""

    def __call__(self, observation: ConsumerObservation) -> None:
        match observation:
            case ConsumerStarted():
                self._ready = True
            case ConsumerStopRequested() | ConsumerStopped():
                self._ready = False
            case SourceFailed(error=error):
                self._last_error = error
            case SourceRestored():
                self._last_error = ""
            case _:
                pass

    async def alive(self) -> HealthCheckResult:
        """Return UP: a process that responds is alive."""
        return HealthCheckResult(True, {"status": "UP"})

    async def ready(self) -> HealthCheckResult:
        """Whether the consumer has started and is not draining; an unavailable broker does not change the result."""
        facts = {"consumer": self._name, "last_source_error": self._last_error or None}
        return HealthCheckResult(self._ready, {"status": "UP" if self._ready else "DOWN", **facts})


class ConsumerMonitor:
    """The endpoints of one consumer. Opens the port on construction; raises ConfigurationError if that fails."""

    def __init__(self, consumer: Consumer, listen: str) -> None:
        self._port = open_port(listen, called="--listen")
        self._metrics, self._state = ConsumerMetrics(), ConsumerState(consumer.name)
        add_process_metrics(self._metrics.registry)
        consumer.observe(self._metrics)
        consumer.observe(self._state)
        self.address = address_of(self._port)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve the pages while the block is open, then close the port."""
        state = self._state
        pages = make_pages(self._metrics.registry, alive=state.alive, ready=state.ready, healthy=state.ready)
        async with served(pages, self._port):
            yield
