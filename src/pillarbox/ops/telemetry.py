"""Open the optional listeners of a relay or a consumer: metrics and traces."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pillarbox.core.observations import Observer
from pillarbox.ops.importing import installed
from pillarbox.ops.settings import Settings

if TYPE_CHECKING:
    from pillarbox.inbox import Consumer
    from pillarbox.ops.monitor.consumer import ConsumerMonitor
    from pillarbox.ops.monitor.relay import RelayMonitor

_OPENTELEMETRY = "opentelemetry.trace"


def open_relay_monitor(settings: Settings) -> RelayMonitor | None:
    """Open the port that serves a relay's metrics and health; None unless `relay.listen` is set.

    Raises ConfigurationError if the port is not available or a package is not installed.
    """
    if settings.relay.listen is None:
        return None
    with installed():
        from pillarbox.ops.monitor.relay import RelayMonitor

        return RelayMonitor(settings)


def open_consumer_monitor(consumer: Consumer, listen: str) -> ConsumerMonitor:
    """Open the port that serves a consumer's metrics and health. Raises ConfigurationError."""
    with installed():
        from pillarbox.ops.monitor.consumer import ConsumerMonitor

        return ConsumerMonitor(consumer, listen)


def relay_tracing() -> list[Observer]:
    """Return the observer that creates a relay's spans; none unless OpenTelemetry is already imported.

    `opentelemetry-instrument` and the application's own modules import and configure it.
    """
    if _OPENTELEMETRY not in sys.modules:
        return []
    from pillarbox.telemetry.opentelemetry import RelayTracing

    return [RelayTracing()]


def trace_consumer(consumer: Consumer) -> None:
    """Let a consumer create spans, if OpenTelemetry is already imported."""
    if _OPENTELEMETRY in sys.modules:
        from pillarbox.telemetry.opentelemetry import ConsumerTracing

        consumer.surround(ConsumerTracing())
