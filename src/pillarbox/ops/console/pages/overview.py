"""The overview: whether events flow, and the reason if not. Its numbers update live."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response, StreamingResponse

from pillarbox.core.errors import PillarboxError
from pillarbox.core.text import noun, safe_json
from pillarbox.ops.console import words
from pillarbox.ops.console.desk import Desk
from pillarbox.ops.console.figures import Glance, lately, troubled
from pillarbox.ops.console.visiting import Visit

WINDOWS = {"15m": 900.0, "1h": 3600.0, "6h": 21_600.0, "24h": 86_400.0}
"""Time windows of the charts."""
_TICK, _TICKS = 1.0, 60


async def overview(visit: Visit) -> Response:
    glance = await visit.desk.lookout.glance()
    wanted = visit.query.get("window", "15m")
    lanes = Counter(lane.owner for lane in glance.seen.lanes)
    paces = await lately(visit.desk.store)
    return await visit.render(
        "overview.html",
        glance=glance,
        figures=figures(glance, visit.desk),
        alarms=alarms(glance, visit.desk),
        lanes=lanes,
        paces=paces,
        troubled=troubled(glance.destinations, paces),
        windows=WINDOWS,
        window=wanted if wanted in WINDOWS else "15m",
    )


async def live(visit: Visit) -> Response:
    """The numbers as they change, as Server-Sent Events."""
    return StreamingResponse(
        _stream(visit.desk),
        media_type="text/event-stream",
        # A proxy that buffers lines would delay the updates.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _stream(desk: Desk) -> AsyncIterator[str]:
    """Stream for a minute; then the browser reconnects and is authenticated again."""
    yield "retry: 1000\n\n"
    for _ in range(_TICKS):
        if desk.closing:
            return
        try:
            told: Mapping[str, str] = figures(await desk.lookout.glance(), desk)
        except PillarboxError as error:
            told = {"state": "unknown", "reason": str(error)}
        yield f"data: {safe_json(told)}\n\n"
        await asyncio.sleep(_TICK)


def figures(glance: Glance, desk: Desk) -> dict[str, str]:
    """Return the numbers as the page shows them, by the names of its elements."""
    seen = glance.seen
    return {
        "state": glance.flow.state,
        "reason": words.clean(desk.masks.text(glance.flow.reason)),
        "backlog": words.backlog(seen),
        "oldest": words.span(seen.oldest),
        "oldest_level": level(seen.oldest, desk.slo),
        "dead_letters": words.at_most(seen.dead),
        "relays": str(glance.alive),
    }


def level(oldest: float | None, slo: float) -> str:
    """good; warn from half of the objective; bad beyond it."""
    if oldest is None or oldest < slo / 2:
        return "good"
    return "warn" if oldest <= slo else "bad"


def alarms(glance: Glance, desk: Desk) -> list[str]:
    """List further problems besides the state at the top."""
    found: list[str] = []
    oldest = glance.seen.oldest
    if oldest is not None and oldest > desk.slo:
        found.append(f"The oldest pending event is {words.span(oldest)} old; the objective is {words.span(desk.slo)}.")
    ended = [relay for relay in glance.seen.relays if relay.lease <= 0]
    if ended:
        lanes = noun(len(ended), "its lanes", "their lanes")
        rest = "other relays acquire them" if glance.alive else "no other relay is running to acquire them"
        found.append(f"{words.plural(len(ended), 'relay')} ended without releasing {lanes}; {rest}.")
    crashes = sum(lane.crashes for lane in glance.seen.lanes)
    if crashes:
        found.append(
            f"{words.plural(crashes, 'takeover')} in a row without progress: an event may crash the relays. "
            "Run `pillarbox doctor`."
        )
    return found
