"""The trace in which an event is recorded, so that whoever handles it can go on with it.

Nothing is imported here: unless somebody has loaded OpenTelemetry, no span can be current.
"""

from __future__ import annotations

import sys

from pillarbox.core.event import Event

_TRACE_ID = slice(3, 35)
"""Of a traceparent: 00-<32 digits>-<16 digits>-<flags>."""


def trace_of(event: Event) -> str | None:
    """The event's own trace id; without one, the `traceparent` of the current span.

    A trace id that is a traceparent of the trace which goes on here gives way to the current span: what follows from an
    event is recorded by whoever handled it.
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
    get_current_span = getattr(loaded, "get_current_span", None)  # another thread may be loading it just now
    if get_current_span is None:
        return None
    context = get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
