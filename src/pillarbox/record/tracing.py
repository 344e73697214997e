"""The creation context of an event: the trace context that consumers and relays continue.

If a sampled span is current, recording an event is a span of its own, `create TYPE`: the event carries that span as
`traceparent`, and its `tracestate`. The spans of sends and consumers are linked to it.

OpenTelemetry is not imported here: if the application has not imported it, there is no current span.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pillarbox.core.event import TRACEPARENT, TRACESTATE, Event, is_tracestate

_TRACE_ID = slice(3, 35)
"""The trace id in a traceparent: 00-<32 digits>-<16 digits>-<flags>."""

# The tracer of each provider; to create one takes longer than to create a span. There is one provider per process.
_tracers: dict[int, tuple[Any, Any]] = {}


def creation_context(event: Event) -> tuple[str | None, Mapping[str, str]]:
    """The trace id and the headers of the event's row: its own trace context, else that of its `create` span.

    The `create` span also replaces a traceparent of its own trace: an event that a handler records is a child of the
    handler's span, not of the span that caused the handled event. Its `tracestate` replaces a header of that name.
    """
    trace, own = _opentelemetry(), event.trace_id
    if trace is None or TRACEPARENT in event.headers:
        return own, event.headers
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return own, event.headers
    if own is not None and own[_TRACE_ID] != f"{context.trace_id:032x}":
        return own, event.headers
    if context.trace_flags.sampled:
        with suppress(Exception):  # tracing must not fail the transaction of the application
            context = _create_span(trace, event)
    traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    state = context.trace_state.to_header() if context.trace_state else ""
    return traceparent, {**event.headers, TRACESTATE: state} if is_tracestate(state) else event.headers


def _opentelemetry() -> Any:
    """The module `opentelemetry.trace` if the application has imported it; else None."""
    loaded = sys.modules.get("opentelemetry.trace")
    return loaded if hasattr(loaded, "get_current_span") else None  # another thread may be importing it


def _create_span(trace: Any, event: Event) -> Any:
    """Create the span of recording the event; returns its context, or the current one if no provider creates spans."""
    attributes = {
        "messaging.system": "pillarbox",
        "messaging.operation.name": "create",
        "messaging.operation.type": "create",
        "messaging.message.id": event.event_id,
        "pillarbox.event_type": event.event_type,
    }
    if event.destination:
        attributes["messaging.destination.name"] = event.destination
    if event.correlation_id:
        attributes["messaging.message.conversation_id"] = event.correlation_id
    span = _tracer(trace).start_span(f"create {event.event_type}", kind=trace.SpanKind.PRODUCER, attributes=attributes)
    span.end()
    return span.get_span_context()


def _tracer(trace: Any) -> Any:
    provider = trace.get_tracer_provider()
    known, tracer = _tracers.get(id(provider), (None, None))
    if known is not provider:
        tracer = trace.get_tracer("pillarbox.record", tracer_provider=provider)
        _tracers.clear()
        _tracers[id(provider)] = provider, tracer
    return tracer
