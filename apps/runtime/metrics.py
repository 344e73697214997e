"""Metrics of HTTP requests, and the page /metrics.

Invariant: labels are routes, methods and status codes, never paths: the number of series is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class HttpMetrics:
    """Counts and times every request by its route."""

    def __init__(self, app: ASGIApp, *, registry: CollectorRegistry) -> None:
        self._app = app
        labels = ["method", "route", "status"]
        self._requests = Counter("http_requests", "Requests answered.", labels, registry=registry)
        self._duration = Histogram(
            "http_request_duration_seconds",
            "From the start of a request to the start of its response.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "unknown")
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._requests.labels(method, route, str(message["status"])).inc()
                self._duration.labels(method, route).observe(time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, send_counted)


def metrics_page(
    registry: CollectorRegistry, before: Callable[[], Awaitable[None]] | None = None
) -> Callable[[Request], Awaitable[Response]]:
    """The page /metrics. before: updates the metrics that are read only when the page is requested."""

    async def page(request: Request) -> Response:
        if before is not None:
            await before()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return page
