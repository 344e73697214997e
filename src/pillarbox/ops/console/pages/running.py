"""Relays: who works, and who shall stop. Keys: which stand still, and which are busy."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from pillarbox.admin.keys import BEHIND, SAMPLE
from pillarbox.ops import steering
from pillarbox.ops.console.pages.asked import answer
from pillarbox.ops.console.visiting import Refused, Visit


async def relays(visit: Visit) -> Response:
    glance = await visit.desk.lookout.glance()
    return await visit.render("relays.html", glance=glance, lanes=Counter(lane.owner for lane in glance.seen.lanes))


async def drain(visit: Visit) -> Response:
    return visit.go("/relays", await drain_one(visit))


async def drain_one(visit: Visit) -> str:
    """One relay, by its id. Returns what was done."""
    relay = str(visit.form.get("relay", ""))
    asked = await steering.drain(visit.desk.store, [relay], by=visit.person.name) if relay else []
    if not asked:
        raise Refused(404, f"There is no relay {relay!r} that lives.")
    return "It was asked to drain: it finishes what it has in hand, gives its lanes back and ends."


async def keys(visit: Visit) -> Response:
    blocked = await visit.desk.store.admin.keys.blocked()
    hot = await visit.desk.store.admin.keys.hot()
    return await visit.render("keys.html", blocked=blocked, hot=hot, counted=BEHIND, sample=SAMPLE)


async def act_on_head(visit: Visit) -> Response:
    return visit.go("/keys", await do_to_head(visit))


async def do_to_head(visit: Visit) -> str:
    """The event that holds a key up: send it again, or make a dead letter of it. Returns what was done."""
    event_id, destination, do = (str(visit.form.get(name, "")) for name in ("id", "destination", "do"))
    match do:
        case "retry":
            if (event_id, destination) not in await steering.heads(visit.desk.store, event_id):
                raise Refused(404, f"The event {event_id!r} holds no key up on its way to {destination!r}.")
            await visit.desk.store.admin.requests.add("retry", [(event_id, destination)], by=visit.person.name)
            return await answer(
                visit, "Asked of the relay that owns its lane: it is sent again within a second or two."
            )
        case "bury":
            asked = await steering.bury(visit.desk.store, event_id, by=visit.person.name)
            if not asked:
                raise Refused(404, f"The event {event_id!r} holds no key up any more.")
            return await answer(
                visit,
                "Asked of the relay that owns its lane: it becomes a dead letter, and the key goes on without it.",
            )
        case _:
            raise Refused(400, f"{do!r} is nothing that can be done with a key: retry its head, or give it up.")
