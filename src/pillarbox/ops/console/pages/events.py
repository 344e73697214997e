"""The list of events, and the page of one event."""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse, Response

from pillarbox.admin.keys import FirstPending, Neighbour, QueueView
from pillarbox.admin.listing import EventDetail, EventFilter, EventPage, EventReport, ListedEvent
from pillarbox.core.message import Held, Status
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.console import command_line, formatting, payloads
from pillarbox.ops.console.fields import is_yes
from pillarbox.ops.console.filters import EVENT_FIELDS, event_page, found_or, given
from pillarbox.ops.console.pages.dead_letter_edit import cannot_edit
from pillarbox.ops.console.payloads import FORMS, Form
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.waiting_reasons import NEIGHBOURS, place, queue_of, unavailable_destinations, waits_for


async def events(request: ConsoleRequest) -> Response:
    """Show a page of events; an id redirects to that event."""
    if "id" in request.query:
        return RedirectResponse(request.link("/event", id=request.query["id"]), status_code=303)
    page, wrong = await found_or(EventPage([], None), event_page(request.store, request.query))
    asked = given(request.query, EVENT_FIELDS)
    return await request.render(
        "events.html",
        page=page,
        asked=asked,
        live=is_yes(request.query, "live") and "after" not in request.query and not wrong,
        command=command_line.command("events list", options=asked),
        counts=await request.context.states.get(),
        known_destinations=request.context.known_destinations(one.destination for one in page.events),
        wrong=wrong,
    )


async def event(request: ConsoleRequest) -> Response:
    story, detail = await find(request)
    form = _form(request.query.get("as"))
    queue = await queue_of(request.store, detail)
    shown, headers = None, dict[str, str]()
    if request.user.payloads:
        shown = await asyncio.to_thread(payloads.show, detail, form, request.context.masks)
        headers = await asyncio.to_thread(request.context.masks.headers, detail.headers)
    return await request.render(
        "event.html",
        story=story,
        detail=detail,
        failures=[failure for failure in story.failures if failure.destination in ("", detail.destination)],
        requests=[asked for asked in story.requests if asked.destination in ("", detail.destination)],
        shown=shown,
        headers=headers,
        forms=FORMS,
        neighbours=await _neighbours(request, detail, queue),
        first=queue.first,
        first_waits=await _why(request, queue.first) if queue.first else "",
        unavailable_destinations=[
            waits_for(view) for view in await unavailable_destinations(request.store, story._replace(events=[detail]))
        ],
        commands=_commands(detail),
        cannot_edit=await cannot_edit(request, detail),
    )


async def payload(request: ConsoleRequest) -> Response:
    """The payload as a file: a browser never shows it."""
    _, detail = await find(request)
    if not request.user.payloads:
        raise RequestError(403, "Your user lacks the right to see payloads.")
    content = await asyncio.to_thread(payloads.download, detail, request.context.masks)
    if content is None:
        raise RequestError(403, "This payload is not JSON, so the masking rules cannot be applied to it.")
    headers = {"content-disposition": 'attachment; filename="payload"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


async def find(request: ConsoleRequest) -> tuple[EventReport, EventDetail]:
    """The event that the URL names, on its way to one destination. Raises RequestError."""
    event_id = request.http.query_params.get("id", "")
    story = await request.store.admin.events.show(event_id)
    if not story.events:
        raise RequestError(404, f"Event {event_id!r} not found. Delivered events expire after their retention period.")
    wanted = request.http.query_params.get("destination")
    fitting = [detail for detail in story.events if wanted in (None, detail.destination)]
    if not fitting:
        raise RequestError(404, f"Event {event_id!r} has no delivery to {wanted!r}.")
    return story, fitting[0]


async def _neighbours(
    request: ConsoleRequest, detail: EventDetail, queue: QueueView
) -> list[ListedEvent | Neighbour | EventDetail]:
    """List a few events of the same key before and after it."""
    if detail.key is None:
        return []
    wanted = EventFilter(key=detail.key)
    earlier = await request.store.admin.events.list(wanted, limit=NEIGHBOURS, after=place(detail))
    return [*reversed(earlier.events), detail, *queue.later]


async def _why(request: ConsoleRequest, first: FirstPending) -> str:
    """Say why the first pending event of a key is not sent."""
    match first.held:
        case Held.BLOCKED:
            return "blocked until an operator decides"
        case Held.PARKED:
            overrides = await request.store.destinations.overrides()
            paused = any(row.paused for row in overrides if row.destination in (EVERYWHERE, first.destination))
            return "destination paused" if paused else "destination unavailable"
        case _:
            return f"retry {formatting.due(first.next_retry_at, request.now)}"


def _commands(detail: EventDetail) -> list[str]:
    """Return the CLI commands for this page and for the next action."""
    match detail.status:
        case Status.PUBLISHED:
            act = "replay"
        case Status.FAILED:
            act = "dead retry"
        case _:
            act = "events retry"
    return [command_line.command(verb, detail.event_id) for verb in ("events show", act)]


def _form(text: str | None) -> Form | None:
    return next((form for form in FORMS if form == text), None)
