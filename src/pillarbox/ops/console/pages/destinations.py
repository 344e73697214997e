"""Destinations: their states, load and overrides; a list, and a page for each."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.states import StateCount
from pillarbox.core.errors import ConfigurationError, UnknownDestinationError
from pillarbox.core.statistics import OUTBOX, Sample
from pillarbox.ops import dead_letter_groups
from pillarbox.ops.console import command_line
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.pages.overview import level
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.destination_overrides import DestinationOverrides
from pillarbox.ops.destination_reports import DestinationReport, read_reports, sparkline
from pillarbox.ops.health import DestinationView
from pillarbox.relay.routing import per_second

SPARKLINE = 3600.0
"""Seconds that the sparkline of a destination shows."""
WIDTH, HEIGHT = 600, 60
"""Size of the sparkline, in its own units."""
GROUPED = 1000
"""The newest dead letters of a destination that its page groups by reason."""
OVERRIDES = ("pause", "resume", "open", "closed", "release", "limit")
"""The actions of an override."""


async def destinations(request: ConsoleRequest) -> Response:
    snapshot = await request.context.overview.get()
    return await request.render("destinations.html", snapshot=snapshot, reports=await reports(request))


async def destination(request: ConsoleRequest) -> Response:
    """Show one destination: state, backlog, rates, errors and overrides."""
    report, samples = await find(request)
    recent = sparkline(samples, report.name, now=request.now, seconds=SPARKLINE)
    groups = await dead_letter_groups.groups(request.store, DeadLetterFilter(destination=report.name), most=GROUPED)
    return await request.render(
        "destination.html",
        report=report,
        snapshot=await request.context.overview.get(),
        recent=recent,
        line=_points(recent),
        minutes=SPARKLINE / 60,
        groups=groups,
        oldest_level=level(report.oldest, request.context.slo),
        command=command_line.command("destinations show", report.name),
    )


async def reports(request: ConsoleRequest) -> list[DestinationReport]:
    """Report every known destination."""
    snapshot = await request.context.overview.get()
    return await read_reports(request.store, snapshot, routes=request.context.routes)


async def find(request: ConsoleRequest) -> tuple[DestinationReport, Sequence[Sample]]:
    """Return the destination that the URL names, and the statistics of the last hour. Raises RequestError."""
    name = request.http.query_params.get("name", "")
    samples = await request.store.admin.samples.since(SPARKLINE)
    report = next((one for one in await reports(request) if one.name == name and name), None)
    if report is None and any(sample.destination == name != OUTBOX for sample in samples):
        report = DestinationReport(view=DestinationView(name=name), pending=StateCount(0), recorded=0.0)
    if report is None:
        raise RequestError(404, f"There is no destination {name!r}: no relay, event or override names it.")
    return report, samples


def _points(values: Sequence[float]) -> str:
    """Return the points of a line in a box of `WIDTH` × `HEIGHT`."""
    most = max(values, default=0.0) or 1.0
    step = WIDTH / max(1, len(values) - 1)
    return " ".join(f"{at * step:.1f},{HEIGHT - value / most * HEIGHT:.1f}" for at, value in enumerate(values))


async def override(request: ConsoleRequest) -> Response:
    said = await override_destination(request)
    if request.form.get("back") == "destination":
        return request.redirect("/destination", said, name=str(request.form.get("destination", "")))
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
            raise ConfigurationError(f"unknown action {action!r}: use {', '.join(OVERRIDES)}")
