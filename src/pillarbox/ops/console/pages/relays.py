"""Relays, and draining them."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.relays import drain_relays


async def relays(request: ConsoleRequest) -> Response:
    snapshot = await request.context.overview.get()
    return await request.render(
        "relays.html", snapshot=snapshot, lanes=Counter(lane.owner for lane in snapshot.overview.lanes)
    )


async def drain(request: ConsoleRequest) -> Response:
    return request.redirect("/relays", await drain_relay(request))


async def drain_relay(request: ConsoleRequest) -> str:
    """Drain one relay by its id. Returns the message to show."""
    relay = str(request.form.get("relay", ""))
    asked = await drain_relays(request.store, [relay], by=request.user.name) if relay else []
    if not asked:
        raise RequestError(404, f"Relay {relay!r} is not running.")
    return "Drain requested: the relay finishes what is in flight, releases its lanes and stops."
