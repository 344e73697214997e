"""The store's gauges for Prometheus; relays serve their own metrics."""

from __future__ import annotations

from starlette.responses import Response

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.ops.console.request import ConsoleRequest, RequestError


async def metrics(request: ConsoleRequest) -> Response:
    """Needs a login: a scraper authenticates as a viewer with HTTP Basic."""
    try:
        from prometheus_client.exposition import choose_encoder

        from pillarbox.telemetry.prometheus import StoreMetrics
        from pillarbox.telemetry.prometheus.process import OutboxRegistry
    except ImportError:
        raise RequestError(501, 'Metrics need one more package: pip install "pillarbox[metrics]".') from None
    gauges = StoreMetrics()
    try:
        gauges.show((await request.context.overview.get()).overview)
    except StoreUnavailableError:
        gauges.show(None)
    encode, content_type = choose_encoder(request.http.headers.get("accept", ""))
    registry = OutboxRegistry(gauges.registry, request.context.outbox)
    return Response(encode(registry), headers={"content-type": content_type})
