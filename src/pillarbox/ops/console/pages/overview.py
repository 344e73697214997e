"""The overview: whether events flow, and the reason if not. Its numbers update live."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response, StreamingResponse

from pillarbox.core.errors import PillarboxError
from pillarbox.core.text import safe_json
from pillarbox.ops.console import formatting
from pillarbox.ops.console.context import ConsoleContext
from pillarbox.ops.console.problems import cards
from pillarbox.ops.console.request import ConsoleRequest
from pillarbox.ops.destination_reports import SPAN, rates_by_destination, unavailable_or_failing
from pillarbox.ops.health import HealthSnapshot

WINDOWS = {"15m": 900.0, "1h": 3600.0, "6h": 21_600.0, "24h": 86_400.0}
"""Time windows of the charts."""
_TICK, _TICKS = 1.0, 60


async def overview(request: ConsoleRequest) -> Response:
    snapshot = await request.context.overview.get()
    wanted = request.query.get("window", "15m")
    lanes = Counter(lane.owner for lane in snapshot.overview.lanes)
    rates = rates_by_destination(await request.store.admin.samples.since(SPAN), seconds=SPAN)
    return await request.render(
        "overview.html",
        snapshot=snapshot,
        statistics=statistics(snapshot, request.context),
        cards=list(cards(snapshot, rates, slo=request.context.slo)),
        lanes=lanes,
        rates=rates,
        failing=unavailable_or_failing(snapshot.destinations, rates),
        windows=WINDOWS,
        window=wanted if wanted in WINDOWS else "15m",
    )


async def live(request: ConsoleRequest) -> Response:
    """The numbers as they change, as Server-Sent Events."""
    return StreamingResponse(
        _stream(request.context),
        media_type="text/event-stream",
        # A proxy that buffers lines would delay the updates.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _stream(context: ConsoleContext) -> AsyncIterator[str]:
    """Stream for a minute; then the browser reconnects and is authenticated again."""
    yield "retry: 1000\n\n"
    for _ in range(_TICKS):
        if context.closing:
            return
        try:
            told: Mapping[str, str] = statistics(await context.overview.get(), context)
        except PillarboxError as error:
            told = {"state": "unknown", "summary": str(error)}
        yield f"data: {safe_json(told)}\n\n"
        await asyncio.sleep(_TICK)


def statistics(snapshot: HealthSnapshot, context: ConsoleContext) -> dict[str, str]:
    """Return the numbers as the page shows them, by the names of its elements."""
    seen = snapshot.overview
    return {
        "state": snapshot.flow.state,
        "reason": formatting.clean(context.masks.text(snapshot.flow.reason)),
        "summary": _summary(snapshot),
        "backlog": formatting.backlog(seen),
        "oldest": formatting.span(seen.oldest),
        "oldest_level": level(seen.oldest, context.slo),
        "dead_letters": formatting.at_most(seen.dead),
        "relays": str(snapshot.running_relays),
    }


def _summary(snapshot: HealthSnapshot) -> str:
    return "Each problem is below, with its next step." if snapshot.flow.problems else "Events flow."


def level(oldest: float | None, slo: float) -> str:
    """good; warn from half of the objective; bad beyond it."""
    if oldest is None or oldest < slo / 2:
        return "good"
    return "warn" if oldest <= slo else "bad"
