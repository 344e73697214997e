"""Events, wherever they are; and one of them whole."""

from __future__ import annotations

import shlex

from starlette.responses import Response

from pillarbox.core.browsing import EventDetail, EventFilter, ListedEvent, Story
from pillarbox.core.message import Status
from pillarbox.ops.console import payloads
from pillarbox.ops.console.filters import EVENT_FIELDS, event_page, given
from pillarbox.ops.console.payloads import FORMS, Form
from pillarbox.ops.console.visiting import Refused, Visit

NEIGHBOURS = 10
"""Events of the same key that are shown beside one."""


async def events(visit: Visit) -> Response:
    page = await event_page(visit.desk.store, visit.query)
    asked = given(visit.query, EVENT_FIELDS)
    return visit.render(
        "events.html",
        page=page,
        asked=asked,
        live="live" in visit.query and "after" not in visit.query,
        command=_command("events list", asked),
        statuses=(*Status.__members__, "RETRYING", "BLOCKED"),
    )


async def event(visit: Visit) -> Response:
    story, detail = await find(visit)
    form = _form(visit.query.get("as"))
    shown = payloads.show(detail, form, visit.desk.masks) if visit.person.payloads else None
    return visit.render(
        "event.html",
        story=story,
        detail=detail,
        failures=[failure for failure in story.failures if failure.destination in ("", detail.destination)],
        requests=[asked for asked in story.requests if asked.destination in ("", detail.destination)],
        shown=shown,
        headers=visit.desk.masks.headers(detail.headers) if visit.person.payloads else {},
        forms=FORMS,
        neighbours=await _neighbours(visit, detail),
        commands=_commands(detail),
    )


async def payload(visit: Visit) -> Response:
    """The payload as a file: a browser never shows it."""
    _, detail = await find(visit)
    if not visit.person.payloads:
        raise Refused(403, "Payloads are hidden from you: that is a right of its own.")
    content = payloads.download(detail, visit.desk.masks)
    if content is None:
        raise Refused(403, "This payload is no JSON, so what is to be masked cannot be found in it.")
    headers = {"content-disposition": 'attachment; filename="payload"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


async def find(visit: Visit) -> tuple[Story, EventDetail]:
    """The event that the URL names, on its way to one destination. Raises Refused."""
    event_id = visit.request.query_params.get("id", "")
    story = await visit.desk.store.browsing.show(event_id)
    if not story.events:
        raise Refused(404, f"There is no event {event_id!r} here; what was delivered is kept for a limited time only.")
    wanted = visit.request.query_params.get("destination")
    fitting = [detail for detail in story.events if wanted in (None, detail.destination)]
    if not fitting:
        raise Refused(404, f"The event {event_id!r} has never been on its way to {wanted!r}.")
    return story, fitting[0]


async def _neighbours(visit: Visit, detail: EventDetail) -> list[ListedEvent]:
    """Others of its key that are not delivered yet: what it waits for, and what waits for it."""
    if detail.key is None:
        return []
    page = await visit.desk.store.browsing.events(EventFilter(key=detail.key), limit=NEIGHBOURS)
    return sorted(page.events, key=lambda one: one.id)


def _commands(detail: EventDetail) -> list[str]:
    """The page, and what one would do next, on a command line."""
    event_id = shlex.quote(detail.event_id)
    match detail.status:
        case Status.PUBLISHED:
            act = "replay"
        case Status.FAILED:
            act = "dead retry"
        case _:
            act = "events retry"
    return [f"pillarbox events show {event_id}", f"pillarbox {act} {event_id}"]


def _form(text: str | None) -> Form | None:
    return next((form for form in FORMS if form == text), None)


def _command(command: str, asked: dict[str, str]) -> str:
    """The same list on a command line."""
    match asked.get("status", "").upper():
        case "BLOCKED":
            return "pillarbox keys blocked"
        case "RETRYING":
            asked = {name: value for name, value in asked.items() if name != "status"}
            command += " --retrying"
    return " ".join(["pillarbox", command, *(f"--{name} {shlex.quote(value)}" for name, value in asked.items())])
