"""The trace context in which an event is recorded, so that its handler can continue the trace.

OpenTelemetry is not imported here: if the application has not imported it, there is no current span.
"""

from __future__ import annotations

import sys

from pillarbox.core.event import Event

_TRACE_ID = slice(3, 35)
"""The trace id in a traceparent: 00-<32 digits>-<16 digits>-<flags>."""


def trace_of(event: Event) -> str | None:
    """The trace id of the event; without one, the `traceparent` of the current span.

    The current span also replaces a traceparent of the same trace: an event that a handler records is a child of the
    handler's span, not of the span that caused the handled event.
    """
    current = _current()
    if current is None or "traceparent" in event.headers:
        return event.trace_id
    if event.trace_id is None or (
        len(event.trace_id) == len(current) and event.trace_id[_TRACE_ID] == current[_TRACE_ID]
    ):
        return current
    return event.trace_id


def _current() -> str | None:
    loaded = sys.modules.get("opentelemetry.trace")
    get_current_span = getattr(loaded, "get_current_span", None)  # another thread may be importing it
    if get_current_span is None:
        return None
    context = get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
