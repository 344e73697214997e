"""One trace from the request to the handler: an event carries the trace context in which it was recorded as
`traceparent`; the spans of the relay and of the consumer are its children.

    request ── record ──┬── send orders          the relay, another process
                        └── process order.placed the consumer, a third one
                               └── spans of the handler

Invariants: an event that was recorded outside of a trace creates no span; this module needs only the API of
OpenTelemetry, and the application configures the export.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from pillarbox.core.message import Message
from pillarbox.core.observations import (
    BatchDelivered,
    BatchObserver,
    EventDeadLettered,
    EventDelivered,
    EventRetried,
    Observation,
)

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        NoOpTracerProvider,
        ProxyTracerProvider,
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        get_tracer,
        get_tracer_provider,
    )
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('tracing needs opentelemetry-api: pip install "pillarbox[tracing]"') from missing

_propagator = TraceContextTextMapPropagator()
_NANOSECONDS = 1_000_000_000


class Traced(Protocol):
    """An event as a consumer or a handler sees it."""

    @property
    def event_id(self) -> str: ...
    @property
    def event_type(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class RelayTracing(BatchObserver):
    """An observer for `Relay(observers=[…])`: a span for every send of an event that was recorded within a trace.

    The span starts when the batch is sent and ends with the answer of the transport.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """provider: default: the application's, `opentelemetry.trace.get_tracer_provider()`."""
        self._provider = provider
        self._tracer = get_tracer("pillarbox.relay", tracer_provider=provider)

    def __call__(self, observation: Observation) -> None:
        """Create a span if the observation is about a send."""
        match observation:
            case EventDelivered(message=message, destination=destination, seconds=seconds):
                self._span(message, destination, seconds)
            case EventRetried(message=message, destination=destination, seconds=seconds, error=error) if seconds:
                self._span(message, destination, seconds, error)
            case EventDeadLettered(message=message, destination=destination, seconds=seconds, error=error) if seconds:
                self._span(message, destination, seconds, error)
            case _:
                pass

    def delivered(self, batch: BatchDelivered) -> None:
        """Create the spans of a batch; skips the events if no provider exports spans."""
        provider = self._provider or get_tracer_provider()
        if not isinstance(provider, ProxyTracerProvider | NoOpTracerProvider):
            for message in batch.messages:
                self._span(message, batch.destination, batch.seconds)

    def _span(self, message: Message, destination: str, seconds: float, error: str | None = None) -> None:
        context = _context(_traceparent(message))
        if context is None:
            return
        end = time.time_ns()
        span = self._tracer.start_span(
            f"send {destination}",
            context=context,
            kind=SpanKind.PRODUCER,
            start_time=end - int(seconds * _NANOSECONDS),
            attributes={
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": destination,
                "messaging.message.id": message.event_id,
                "pillarbox.event_type": message.event_type,
                "pillarbox.attempt": message.failures + 1,
            },
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(end)


class ConsumerTracing:
    """For `Consumer(around=ConsumerTracing())`: the span of handling an event and of its transaction.

    Other handlers enter the span themselves: `with tracing(event): …`.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """provider: default: the application's, `opentelemetry.trace.get_tracer_provider()`."""
        self._tracer = get_tracer("pillarbox.consumer", tracer_provider=provider)

    def __call__(self, event: Traced) -> AbstractContextManager[object]:
        """Open the span of `event` as the current span; it records an exception that leaves the block."""
        return self._tracer.start_as_current_span(
            f"process {event.event_type}",
            context=_context(event.headers.get("traceparent")),
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.message.id": event.event_id,
                "pillarbox.event_type": event.event_type,
            },
        )


def _traceparent(message: Message) -> str | None:
    """Return the traceparent as the transport sends it: a header of the producer takes precedence."""
    if message.headers_json != "{}" and (given := message.headers.get("traceparent")):
        return given
    return message.trace_id


def _context(traceparent: str | None) -> Context | None:
    """Parse a traceparent; None if it is missing or malformed."""
    if traceparent is None:
        return None
    context = _propagator.extract({"traceparent": traceparent}, Context())
    return context or None
