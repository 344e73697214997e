"""Destinations: their states and overrides."""

from __future__ import annotations

from starlette.responses import Response

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.figures import lately
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.ops.flow import DestinationView, destinations_of
from pillarbox.ops.overrides import DestinationOverrides, UnknownDestination, met
from pillarbox.relay.routing import per_second


async def destinations(visit: Visit) -> Response:
    glance = await visit.desk.lookout.glance()
    found = await listed(visit)
    return await visit.render("destinations.html", glance=glance, listed=found, paces=await lately(visit.desk.store))


async def listed(visit: Visit) -> list[DestinationView]:
    """List destinations with a breaker, an override or events."""
    glance = await visit.desk.lookout.glance()
    return destinations_of(glance.seen.relays, glance.steering, met=await met(visit.desk.store))


async def steer(visit: Visit) -> Response:
    said = await steer_one(visit)
    return visit.go("/destinations", said)


async def steer_one(visit: Visit) -> str:
    """Pause and resume need the role operator, breakers and limits the role admin. Returns the message to show."""
    name, do = str(visit.form.get("destination", "")), str(visit.form.get("do", ""))
    if do not in ("pause", "resume") and not visit.may(Role.ADMIN):
        raise Refused(403, f"Breakers and limits need the role {Role.ADMIN.word}.")
    overrides = DestinationOverrides(
        store=visit.desk.store,
        by=visit.person.name,
        configured=visit.desk.destinations,
        force=is_yes(visit.form, "force"),
    )
    try:
        return await _turn(overrides, name, do, str(visit.form.get("limit") or "").strip())
    except UnknownDestination as error:
        raise Refused(404, str(error)) from None


async def _turn(overrides: DestinationOverrides, name: str, do: str, limit: str) -> str:
    match do:
        case "pause":
            await overrides.pause([name])
            return f"{name} is paused."
        case "resume":
            await overrides.resume([name])
            return f"{name} is resumed."
        case "open" | "closed":
            await overrides.force_breaker(name, do)
            return f"The breaker of {name} is forced {do}."
        case "release":
            await overrides.force_breaker(name, None)
            return f"The breaker override of {name} is removed."
        case "limit":
            await overrides.limit(name, per_second(limit) if limit else None)
            return f"{name} is limited to {limit}." if limit else f"The limit override of {name} is removed."
        case _:
            raise ConfigurationError(f"unknown action {do!r}: use pause, resume, open, closed, release or limit")
