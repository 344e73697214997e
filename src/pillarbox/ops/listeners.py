"""Who listens to a relay or a consumer besides the log: metrics and traces, where somebody wants them."""

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
    """What serves a relay's metrics and health, its port open already; None unless `relay.listen` is set.

    Raises ConfigurationError for a port that cannot be had, and where a package is not installed.
    """
    if settings.relay.listen is None:
        return None
    with installed():
        from pillarbox.ops.monitor.relay import RelayMonitor

        return RelayMonitor(settings)


def open_consumer_monitor(consumer: Consumer, listen: str) -> ConsumerMonitor:
    """The same for a consumer. Raises ConfigurationError."""
    with installed():
        from pillarbox.ops.monitor.consumer import ConsumerMonitor

        return ConsumerMonitor(consumer, listen)


def relay_tracing() -> list[Observer]:
    """What makes a relay's spans; nothing unless somebody has loaded OpenTelemetry, and so may have told it where spans
    go: `opentelemetry-instrument` does, and the application's own modules."""
    if _OPENTELEMETRY not in sys.modules:
        return []
    from pillarbox.telemetry.opentelemetry import RelayTracing

    return [RelayTracing()]


def trace_consumer(consumer: Consumer) -> None:
    """Have a consumer make spans, on the same condition, unless it has its own way."""
    if _OPENTELEMETRY in sys.modules:
        from pillarbox.telemetry.opentelemetry import ConsumerTracing

        consumer.surround(ConsumerTracing())
