"""Destinations: their states and overrides."""

from __future__ import annotations

from starlette.responses import Response

from pillarbox.core.errors import ConfigurationError, UnknownDestinationError
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.console.statistics import recent_rates
from pillarbox.ops.destination_overrides import DestinationOverrides, known_destinations
from pillarbox.ops.health import DestinationView, destinations_of
from pillarbox.relay.routing import per_second


async def destinations(request: ConsoleRequest) -> Response:
    snapshot = await request.context.overview.snapshot()
    found = await listed(request)
    return await request.render(
        "destinations.html", snapshot=snapshot, listed=found, rates=await recent_rates(request.store)
    )


async def listed(request: ConsoleRequest) -> list[DestinationView]:
    """List destinations with a breaker, an override or events."""
    snapshot = await request.context.overview.snapshot()
    return destinations_of(snapshot.overview.relays, snapshot.overrides, known=await known_destinations(request.store))


async def override(request: ConsoleRequest) -> Response:
    said = await override_destination(request)
    return request.redirect("/destinations", said)


async def override_destination(request: ConsoleRequest) -> str:
    """Pause and resume need the role operator, breakers and limits the role admin. Returns the message to show."""
    name, action = str(request.form.get("destination", "")), str(request.form.get("action", ""))
    if action not in ("pause", "resume") and not request.may(Role.ADMIN):
        raise RequestError(403, f"Breakers and limits need the role {Role.ADMIN.word}.")
    overrides = DestinationOverrides(
        store=request.store,
        by=request.user.name,
        configured=request.context.destinations,
        force=is_yes(request.form, "force"),
    )
    try:
        return await _apply(overrides, name, action, str(request.form.get("limit") or "").strip())
    except UnknownDestinationError as error:
        raise RequestError(404, str(error)) from None


async def _apply(overrides: DestinationOverrides, name: str, action: str, limit: str) -> str:
    match action:
        case "pause":
            await overrides.pause([name])
            return f"{name} is paused."
        case "resume":
            await overrides.resume([name])
            return f"{name} is resumed."
        case "open" | "closed":
            await overrides.force_breaker(name, action)
            return f"The breaker of {name} is forced {action}."
        case "release":
            await overrides.force_breaker(name, None)
            return f"The breaker override of {name} is removed."
        case "limit":
            await overrides.limit(name, per_second(limit) if limit else None)
            return f"{name} is limited to {limit}." if limit else f"The limit override of {name} is removed."
        case _:
            raise ConfigurationError(f"unknown action {action!r}: use pause, resume, open, closed, release or limit")
