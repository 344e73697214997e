"""Blocked and busiest ordering keys."""

from __future__ import annotations

from starlette.responses import Response

from pillarbox.admin.keys import SAMPLED, WAITING_COUNTED
from pillarbox.ops import holding_events
from pillarbox.ops.console.pages.messages import answer
from pillarbox.ops.console.request import ConsoleRequest, RequestError


async def keys(request: ConsoleRequest) -> Response:
    blocked = await request.store.admin.keys.blocked()
    busiest = await request.store.admin.keys.busiest()
    return await request.render("keys.html", blocked=blocked, busiest=busiest, counted=WAITING_COUNTED, sample=SAMPLED)


async def post_action(request: ConsoleRequest) -> Response:
    return request.redirect("/keys", await act_on_first(request))


async def act_on_first(request: ConsoleRequest) -> str:
    """Retry or dead-letter the event that blocks a key. Returns the message to show."""
    event_id, destination, action = (str(request.form.get(name, "")) for name in ("id", "destination", "action"))
    match action:
        case "retry":
            if (event_id, destination) not in await holding_events.find(request.store, event_id):
                raise RequestError(404, f"Event {event_id!r} blocks no key of {destination!r}.")
            await request.store.admin.requests.add("retry", [(event_id, destination)], by=request.user.name)
            return await answer(request, "Requested: the relay that owns its lane retries it within two seconds.")
        case "dead_letter":
            asked = await holding_events.dead_letter(request.store, event_id, by=request.user.name)
            if not asked:
                raise RequestError(404, f"Event {event_id!r} no longer blocks a key.")
            return await answer(
                request,
                "Requested: the relay that owns its lane dead-letters it and continues with the next event of the key.",
            )
        case _:
            raise RequestError(400, f"Unknown action {action!r}: use retry or dead_letter.")
