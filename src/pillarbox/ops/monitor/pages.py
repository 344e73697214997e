"""The four read-only HTTP endpoints of a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pillarbox.ops.monitor.checks import HealthCheckResult

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from pillarbox.ops.json_response import SafeJSONResponse
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('metrics and health need more packages: pip install "pillarbox[metrics]"') from missing

__all__ = ["Starlette", "make_pages"]

HealthCheck = Callable[[], Awaitable[HealthCheckResult]]
Prepare = Callable[[], Awaitable[None]]

UP, DOWN = 200, 503


async def _nothing() -> None:
    return


def make_pages(
    registry: CollectorRegistry,
    *,
    alive: HealthCheck,
    ready: HealthCheck,
    healthy: HealthCheck,
    before: Prepare = _nothing,
) -> Starlette:
    """Return the application with the four endpoints.

    before: awaited before each scrape, to update gauges that are computed on request.
    """

    async def metrics(request: Request) -> Response:
        await before()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/livez", _page(alive)),
            Route("/readyz", _page(ready)),
            Route("/health", _page(healthy)),
        ]
    )


def _page(check: HealthCheck) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        result = await check()
        return SafeJSONResponse(
            result.facts, status_code=UP if result.yes else DOWN, headers={"cache-control": "no-store"}
        )

    return page
