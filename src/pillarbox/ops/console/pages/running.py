"""Relays and draining them; blocked and busiest ordering keys."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from pillarbox.admin.keys import SAMPLED, WAITING_COUNTED
from pillarbox.ops import overrides
from pillarbox.ops.console.pages.asked import answer
from pillarbox.ops.console.visiting import Refused, Visit


async def relays(visit: Visit) -> Response:
    glance = await visit.desk.lookout.glance()
    return await visit.render("relays.html", glance=glance, lanes=Counter(lane.owner for lane in glance.seen.lanes))


async def drain(visit: Visit) -> Response:
    return visit.go("/relays", await drain_one(visit))


async def drain_one(visit: Visit) -> str:
    """Drain one relay by its id. Returns the message to show."""
    relay = str(visit.form.get("relay", ""))
    asked = await overrides.drain(visit.desk.store, [relay], by=visit.person.name) if relay else []
    if not asked:
        raise Refused(404, f"Relay {relay!r} is not running.")
    return "Drain requested: the relay finishes what is in flight, releases its lanes and stops."


async def keys(visit: Visit) -> Response:
    blocked = await visit.desk.store.admin.keys.blocked()
    hot = await visit.desk.store.admin.keys.busiest()
    return await visit.render("keys.html", blocked=blocked, hot=hot, counted=WAITING_COUNTED, sample=SAMPLED)


async def act_on_head(visit: Visit) -> Response:
    return visit.go("/keys", await do_to_head(visit))


async def do_to_head(visit: Visit) -> str:
    """Retry or dead-letter the event that blocks a key. Returns the message to show."""
    event_id, destination, do = (str(visit.form.get(name, "")) for name in ("id", "destination", "do"))
    match do:
        case "retry":
            if (event_id, destination) not in await overrides.heads(visit.desk.store, event_id):
                raise Refused(404, f"Event {event_id!r} blocks no key of {destination!r}.")
            await visit.desk.store.admin.requests.add("retry", [(event_id, destination)], by=visit.person.name)
            return await answer(visit, "Requested: the relay that owns its lane retries it within two seconds.")
        case "dead_letter":
            asked = await overrides.dead_letter(visit.desk.store, event_id, by=visit.person.name)
            if not asked:
                raise Refused(404, f"Event {event_id!r} no longer blocks a key.")
            return await answer(
                visit,
                "Requested: the relay that owns its lane dead-letters it and continues with the next event of the key.",
            )
        case _:
            raise Refused(400, f"Unknown action {do!r}: use retry or dead_letter.")
