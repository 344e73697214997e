"""Liveness and readiness of the console, for orchestrators: without a login, and without any detail of the store."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from pillarbox.core.errors import PillarboxError
from pillarbox.ops.console.errors import context_of
from pillarbox.ops.json_response import SafeJSONResponse

_TIMEOUT = 4.0
"""Seconds: less than an orchestrator waits."""


async def livez(request: Request) -> Response:
    """The console responds."""
    return SafeJSONResponse({"status": "UP"})


async def readyz(request: Request) -> Response:
    """The store is available and has the tables; the pages show the reason if not.

    All visitors share one query at a time, as on the overview: a probe costs the store nothing more.
    """
    try:
        async with asyncio.timeout(_TIMEOUT):
            await context_of(request).overview.get()
    except (PillarboxError, TimeoutError):
        return SafeJSONResponse({"status": "DOWN", "reason": "the store is not ready"}, status_code=503)
    return SafeJSONResponse({"status": "UP"})
