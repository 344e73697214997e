"""OpenTelemetry: one trace for the request, the event, its publication and the consumer.

Only the API package is required. The variables of OpenTelemetry configure the export: with OTEL_TRACES_EXPORTER set to
`console`, `otlp` or any other installed exporter, the SDK exports spans. Without it no span is created, and the trace
of an incoming request still propagates to its events.
"""

from __future__ import annotations

import atexit
import os
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    # Only the API needs FastAPI; consumers and relays start a third faster without it.
    from fastapi.telemetry import TelemetryConfig

EXPORTER = "OTEL_TRACES_EXPORTER"
SERVICE = "OTEL_SERVICE_NAME"
OURS_ONLY: TelemetryConfig = {"tracing": False}
"""For `FastAPI(telemetry=…)`: `HttpTracing` creates the span of a request. FastAPI's own span would be a duplicate, and
the root of a trace without events."""


class TracingError(Exception):
    """Spans cannot be exported as configured; the text says what to install or change."""


def configure(service: str) -> None:
    """Export spans as the environment says, under OTEL_SERVICE_NAME or else `service`. Raises TracingError."""
    wanted = os.environ.get(EXPORTER, "").strip()
    if wanted in ("", "none"):
        return
    os.environ.setdefault(SERVICE, service)
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise TracingError(f"{EXPORTER} is {wanted!r} and needs the package opentelemetry-sdk; install it") from None
    provider = TracerProvider()
    for name in wanted.split(","):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip())))
    trace.set_tracer_provider(provider)
    atexit.register(provider.shutdown)  # exports the remaining spans


def _exporter(name: str) -> Any:
    installed = {one.name: one for one in entry_points(group="opentelemetry_traces_exporter")}
    if name not in installed:
        there = ", ".join(sorted(installed)) or "none"
        raise TracingError(f"{EXPORTER} names {name!r}, which is not installed; installed: {there}")
    return installed[name].load()()


def span(name: str) -> AbstractContextManager[object]:
    """A span around a block; events recorded in it carry its trace."""
    return trace.get_tracer("apps").start_as_current_span(name)


class HttpTracing:
    """A span around every request, a child of the caller's `traceparent`; events recorded in it carry its trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tracer = trace.get_tracer("apps.http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._tracer.start_as_current_span(
            scope["method"],
            context=propagate.extract(dict(Headers(scope=scope))),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": scope["method"], "url.path": scope["path"]},
        ) as span:

            async def send_traced(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                await self._app(scope, receive, send_traced)
            finally:
                if (route := getattr(scope.get("route"), "path", None)) is not None:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
