"""The first page: is it flowing, and if not, why? Its numbers move by themselves."""

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
"""What the charts can show."""
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
        # A proxy that keeps lines back until there are many would make this useless.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _stream(desk: Desk) -> AsyncIterator[str]:
    """For a minute: then the browser asks again, and has to be logged in for it."""
    yield "retry: 1000\n\n"
    for _ in range(_TICKS):
        if desk.closing:
            return
        try:
            told: Mapping[str, str] = figures(await desk.lookout.glance(), desk)
        except PillarboxError as error:
            told = {"state": "unknown", "why": str(error)}
        yield f"data: {safe_json(told)}\n\n"
        await asyncio.sleep(_TICK)


def figures(glance: Glance, desk: Desk) -> dict[str, str]:
    """The numbers as the page writes them, by the names that it gives to their places."""
    seen = glance.seen
    return {
        "state": glance.flow.state,
        "why": words.clean(desk.masks.text(glance.flow.why)),
        "backlog": words.backlog(seen),
        "oldest": words.span(seen.oldest),
        "oldest_level": level(seen.oldest, desk.slo),
        "dead": words.at_most(seen.dead),
        "relays": str(glance.alive),
    }


def level(oldest: float | None, slo: float) -> str:
    """good, warn from half of what is allowed on, bad beyond it."""
    if oldest is None or oldest < slo / 2:
        return "good"
    return "warn" if oldest <= slo else "bad"


def alarms(glance: Glance, desk: Desk) -> list[str]:
    """What somebody should look at now, besides the sentence at the top."""
    found = []
    oldest = glance.seen.oldest
    if oldest is not None and oldest > desk.slo:
        found.append(
            f"The oldest event has waited for {words.span(oldest)}; no more than {words.span(desk.slo)} is allowed."
        )
    ended = [relay for relay in glance.seen.relays if relay.lease <= 0]
    if ended:
        lanes = noun(len(ended), "its lanes", "their lanes")
        rest = "others take them over" if glance.alive else "no other is there to take them over"
        found.append(f"{words.plural(len(ended), 'relay')} stopped without giving {lanes} back; {rest}.")
    crashes = sum(lane.crashes for lane in glance.seen.lanes)
    if crashes:
        found.append(
            f"{words.plural(crashes, 'takeover')} in a row without progress: a message may make relays crash. "
            "`pillarbox doctor` knows more."
        )
    return found
