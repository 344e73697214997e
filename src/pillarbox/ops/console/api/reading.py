"""Queries of the API: the content of the pages, with the field names of the commands' `--json`."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from typing import Any

from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import exports
from pillarbox.ops.console import payloads
from pillarbox.ops.console.api.endpoint import Endpoint
from pillarbox.ops.console.figures import course as course_of
from pillarbox.ops.console.figures import lately
from pillarbox.ops.console.filters import MOST, PER_PAGE, dead_letter_page, event_page, letter_filter, whole
from pillarbox.ops.console.pages.destinations import listed
from pillarbox.ops.console.pages.insight import audit_page
from pillarbox.ops.console.pages.overview import WINDOWS, figures
from pillarbox.ops.console.patience import LONG
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.ops.dead_letter_groups import MOST_GROUPS, groups
from pillarbox.ops.inbox import read_inbox
from pillarbox.ops.waiting_reasons import earlier_events, shut

_EVENTS = {
    "type": "exactly this event type",
    "key": "exactly this key",
    "destination": "exactly this destination",
    "since": "an age such as 1h, or a time",
    "limit": "rows, at most 500",
}


async def live_figures(visit: Visit) -> dict[str, Any]:
    return figures(await visit.desk.lookout.glance(), visit.desk)


async def status(visit: Visit) -> dict[str, Any]:
    glance = await visit.desk.lookout.glance()
    seen = glance.seen
    return {
        "state": glance.flow.state,
        "reason": glance.flow.reason,
        "backlog": seen.backlog,
        "oldest_seconds": None if seen.oldest is None else round(seen.oldest, 3),
        "exact": seen.exact,
        "dead_letters": seen.dead,
        "paused": glance.paused,
        "lanes": [lane._asdict() for lane in seen.lanes],
    }


async def course(visit: Visit) -> dict[str, Any]:
    window = visit.query.get("window", "15m")
    if window not in WINDOWS:
        raise ConfigurationError(f"unknown window {window!r}: use {', '.join(WINDOWS)}")
    samples = await visit.desk.store.admin.samples.since(WINDOWS[window])
    return asdict(course_of(samples, now=visit.now, seconds=WINDOWS[window]))


async def events(visit: Visit) -> dict[str, Any]:
    page = await event_page(visit.desk.store, visit.query)
    after = None if page.after is None else str(page.after)
    return {"events": [exports.listed_event(event) for event in page.events], "after": after}


async def event(visit: Visit) -> dict[str, Any]:
    event_id = visit.query.get("id", "")
    story = await visit.desk.store.admin.events.show(event_id)
    if not story.events:
        raise Refused(404, f"event {event_id!r} not found")
    return {
        "event_id": event_id,
        "events": [await asyncio.to_thread(_detail, visit, detail) for detail in story.events],
        "failures": [exports.failure(failure) for failure in story.failures],
        "requests": [exports.open_request(asked) for asked in story.requests],
        "waiting_for_events": [exports.first_pending(one) for one in await earlier_events(visit.desk.store, story)],
        "waiting_for_destinations": [exports.held_by_destination(one) for one in await shut(visit.desk.store, story)],
    }


async def dead(visit: Visit) -> dict[str, Any]:
    page = await dead_letter_page(visit.desk.store, visit.query)
    return {"dead_letters": [exports.listed_letter(letter) for letter in page.letters], "before": page.before}


async def dead_groups(visit: Visit) -> dict[str, Any]:
    found = await groups(visit.desk.store, letter_filter(visit.query))
    limit = whole(visit.query.get("limit"), "limit", default=PER_PAGE, most=MOST)
    start = whole(visit.query["after"], "after", default=0, most=MOST_GROUPS) if "after" in visit.query else 0
    end = start + limit
    return {
        "groups": [exports.letter_group(group) for group in found.groups[start:end]],
        "complete": found.complete,
        "after": end if end < len(found.groups) else None,
    }


async def destinations(visit: Visit) -> dict[str, Any]:
    glance = await visit.desk.lookout.glance()
    pace = await lately(visit.desk.store)
    return {
        "paused": glance.paused,
        "destinations": [
            asdict(view) | {"rates": asdict(pace[view.name]) if view.name in pace else None}
            for view in await listed(visit)
        ],
    }


async def keys(visit: Visit) -> dict[str, Any]:
    blocked, hot = await visit.desk.store.admin.keys.blocked(), await visit.desk.store.admin.keys.busiest()
    return {
        "blocked": [exports.blocked_key(one) for one in blocked],
        "hot": [one._asdict() for one in hot],
    }


async def relays(visit: Visit) -> dict[str, Any]:
    seen = (await visit.desk.lookout.glance()).seen
    lanes = Counter(lane.owner for lane in seen.lanes)
    return {"relays": [exports.relay(relay, lanes=lanes[relay.id]) for relay in seen.relays]}


async def inbox(visit: Visit) -> dict[str, Any]:
    return (await read_inbox(visit.desk.store, retention=visit.desk.retention)).as_json()


async def store(visit: Visit) -> dict[str, Any]:
    status = await visit.desk.store.schema.status()
    return {"schema": asdict(status)} | exports.table_sizes(await visit.desk.store.diagnosis.table_sizes())


async def audit(visit: Visit) -> dict[str, Any]:
    page = await audit_page(visit)
    return {"audit": [exports.audit_entry(entry) for entry in page.entries], "before": page.before}


async def doctor(visit: Visit) -> dict[str, Any]:
    if visit.desk.examination is None:
        raise Refused(404, "this console has no settings to check: run `pillarbox doctor`")
    report, at = await visit.desk.examination.last()
    return {
        "result": report.worst,
        "examined_at": exports.written(at),
        "findings": [asdict(finding) for finding in report.findings],
    }


def _detail(visit: Visit, detail: EventDetail) -> dict[str, Any]:
    """Omit payload and headers for users who may not see them; mask them for all others."""
    told = exports.event_detail(detail)
    for name in ("headers", "payload", "payload_base64"):
        told.pop(name, None)
    return told | payloads.content(detail, visit.desk.masks) if visit.person.payloads else told


READINGS = (
    Endpoint(path="/statistics", summary="The numbers of the overview, formatted", answer=live_figures),
    Endpoint(path="/status", summary="Whether events flow, and the reason if not", answer=status),
    Endpoint(
        path="/timeseries",
        summary="Rates and latencies over time",
        answer=course,
        fields={"window": ", ".join(WINDOWS)},
    ),
    Endpoint(
        path="/events",
        summary="List events, newest first, in pages",
        answer=events,
        fields={
            "status": "PENDING, PROCESSING, PUBLISHED, FAILED, RETRYING or BLOCKED",
            **_EVENTS,
            "until": "recorded before; format as since",
            "aggregate": "an aggregate type such as ORDER, or one aggregate such as ORDER:42",
            "error": "a part of the last error",
            "after": "cursor from the previous page",
        },
    ),
    Endpoint(
        path="/event",
        summary="Show one event with its failed sends",
        answer=event,
        fields={"id": "its id"},
    ),
    Endpoint(
        path="/dead",
        summary="List dead letters, newest first, in pages",
        answer=dead,
        fields={
            "id": "an event id",
            **_EVENTS,
            "error": "a part of the error",
            "before": "cursor from the previous page",
        },
    ),
    Endpoint(
        path="/dead/groups",
        summary="List dead letters by reason, largest group first, in pages",
        answer=dead_groups,
        fields={
            "id": "an event id",
            **_EVENTS,
            "error": "a part of the error",
            "after": "cursor from the previous page",
        },
    ),
    Endpoint(path="/destinations", summary="Destinations with state, override and recent rates", answer=destinations),
    Endpoint(path="/keys", summary="Blocked and busiest ordering keys", answer=keys),
    Endpoint(path="/relays", summary="Relays with lanes and breakers", answer=relays),
    Endpoint(path="/inbox", summary="Per-consumer inbox statistics", answer=inbox),
    Endpoint(
        path="/store",
        summary="Schema version, table sizes and the oldest transaction",
        answer=store,
    ),
    Endpoint(
        path="/audit",
        summary="Audit entries, newest first, in pages",
        answer=audit,
        fields={
            "who": "a name",
            "what": "an action",
            "since": _EVENTS["since"],
            "before": "cursor from the previous page",
        },
    ),
    Endpoint(
        path="/doctor",
        summary="Findings of the doctor, at most half a minute old; changes nothing",
        answer=doctor,
        patience=LONG,
    ),
)
