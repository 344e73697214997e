"""Queries of the API: the content of the pages, with the field names of the commands' `--json`."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from typing import Any

from pillarbox.admin.listing import EventDetail
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import blocked_keys, exports
from pillarbox.ops.console import payloads
from pillarbox.ops.console.api import models, outbox_models
from pillarbox.ops.console.api.endpoint import ApiEndpoint
from pillarbox.ops.console.api.field_schemas import choice, number
from pillarbox.ops.console.filters import (
    MAX_PER_PAGE,
    PER_PAGE,
    dead_letter_filter,
    dead_letter_page,
    event_page,
    whole,
)
from pillarbox.ops.console.pages import destinations as destination_pages
from pillarbox.ops.console.pages.audit import audit_page
from pillarbox.ops.console.pages.overview import WINDOWS, statistics
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.console.statistics import time_series
from pillarbox.ops.console.timeouts import LONG_TIMEOUT
from pillarbox.ops.dead_letter_groups import MOST_GROUPS, groups
from pillarbox.ops.destination_reports import sparkline
from pillarbox.ops.inbox import read_inbox
from pillarbox.ops.waiting_reasons import earlier_events, unavailable_destinations

_EVENTS = {
    "type": "exactly this event type",
    "key": "exactly this key",
    "destination": "exactly this destination",
    "since": "an age such as 1h, or a time",
    "limit": "rows, at most 500",
}
_LIMIT = number(1, MAX_PER_PAGE)
_LAST_ROW = number(1, 2**63 - 1)


async def live_statistics(request: ConsoleRequest) -> dict[str, Any]:
    return statistics(await request.context.overview.get(), request.context)


async def status(request: ConsoleRequest) -> dict[str, Any]:
    snapshot = await request.context.overview.get()
    overview = snapshot.overview
    return {
        "state": snapshot.flow.state,
        "reason": snapshot.flow.reason,
        "problems": [exports.problem(problem) for problem in snapshot.flow.problems],
        "backlog": overview.backlog,
        "oldest_seconds": None if overview.oldest is None else round(overview.oldest, 3),
        "exact": overview.exact,
        "dead_letters": overview.dead,
        "paused": snapshot.paused,
        "lanes": [lane._asdict() for lane in overview.lanes],
    }


async def timeseries(request: ConsoleRequest) -> dict[str, Any]:
    window = request.query.get("window", "15m")
    if window not in WINDOWS:
        raise ConfigurationError(f"unknown window {window!r}: use {', '.join(WINDOWS)}")
    samples = await request.store.admin.samples.since(WINDOWS[window])
    return asdict(time_series(samples, now=request.now, seconds=WINDOWS[window]))


async def events(request: ConsoleRequest) -> dict[str, Any]:
    page = await event_page(request.store, request.query)
    after = None if page.after is None else str(page.after)
    return {"events": [exports.listed_event(event) for event in page.events], "after": after}


async def states(request: ConsoleRequest) -> dict[str, Any]:
    return {"states": exports.state_counts(await request.context.states.get())}


async def event(request: ConsoleRequest) -> dict[str, Any]:
    event_id = request.query.get("id", "")
    story = await request.store.admin.events.show(event_id)
    if not story.events:
        raise RequestError(404, f"event {event_id!r} not found")
    return {
        "event_id": event_id,
        "events": [await asyncio.to_thread(_detail, request, detail) for detail in story.events],
        "failures": [exports.failure(failure) for failure in story.failures],
        "requests": [exports.open_request(asked) for asked in story.requests],
        "waiting_for_events": [exports.first_pending(one) for one in await earlier_events(request.store, story)],
        "waiting_for_destinations": [
            exports.held_by_destination(one) for one in await unavailable_destinations(request.store, story)
        ],
    }


async def dead(request: ConsoleRequest) -> dict[str, Any]:
    page = await dead_letter_page(request.store, request.query)
    return {
        "dead_letters": [exports.listed_dead_letter(dead_letter) for dead_letter in page.dead_letters],
        "after": page.before,
    }


async def dead_groups(request: ConsoleRequest) -> dict[str, Any]:
    found = await groups(request.store, dead_letter_filter(request.query))
    limit = whole(request.query.get("limit"), "limit", default=PER_PAGE, most=MAX_PER_PAGE)
    start = whole(request.query["after"], "after", default=0, most=MOST_GROUPS) if "after" in request.query else 0
    end = start + limit
    return {
        "groups": [exports.dead_letter_group(group) for group in found.groups[start:end]],
        "complete": found.complete,
        "after": end if end < len(found.groups) else None,
    }


async def destinations(request: ConsoleRequest) -> dict[str, Any]:
    snapshot = await request.context.overview.get()
    found = await destination_pages.reports(request)
    return {"paused": snapshot.paused, "destinations": [exports.destination_report(report) for report in found]}


async def destination(request: ConsoleRequest) -> dict[str, Any]:
    report, samples = await destination_pages.find(request)
    recent = sparkline(samples, report.name, now=request.now, seconds=destination_pages.SPARKLINE)
    return exports.destination_report(report) | {"published_last_hour": [round(value, 3) for value in recent]}


async def keys(request: ConsoleRequest) -> dict[str, Any]:
    blocked, busiest = await request.store.admin.keys.blocked(), await request.store.admin.keys.busiest()
    return {
        "blocked": [exports.blocked_key(one) for one in blocked],
        "busiest": [one._asdict() for one in busiest],
    }


async def key_groups(request: ConsoleRequest) -> dict[str, Any]:
    found = await blocked_keys.groups(request.store)
    shown = [exports.blocked_group(group) for group in found.groups[:MAX_PER_PAGE]]
    return {"groups": shown, "complete": found.complete}


async def relays(request: ConsoleRequest) -> dict[str, Any]:
    overview = (await request.context.overview.get()).overview
    lanes = Counter(lane.owner for lane in overview.lanes)
    return {"relays": [exports.relay(relay, lanes=lanes[relay.id]) for relay in overview.relays]}


async def inbox(request: ConsoleRequest) -> dict[str, Any]:
    return (await read_inbox(request.store, retention=request.context.retention)).as_json()


async def store(request: ConsoleRequest) -> dict[str, Any]:
    status = await request.store.schema.status()
    return {"schema": asdict(status)} | exports.table_sizes(await request.store.diagnosis.table_sizes())


async def audit(request: ConsoleRequest) -> dict[str, Any]:
    page = await audit_page(request)
    return {"audit": [exports.audit_entry(entry) for entry in page.entries], "after": page.before}


async def doctor(request: ConsoleRequest) -> dict[str, Any]:
    if request.context.doctor is None:
        raise RequestError(404, "this console has no settings to check: run `pillarbox doctor`")
    report, at = await request.context.doctor.report()
    return {
        "result": report.worst,
        "checked_at": exports.written(at),
        "findings": [asdict(finding) for finding in report.findings],
    }


def _detail(request: ConsoleRequest, detail: EventDetail) -> dict[str, Any]:
    """Omit payload and headers for users without permission to see them; mask them for all others."""
    told = exports.event_detail(detail)
    for name in ("headers", "payload", "payload_base64"):
        told.pop(name, None)
    return told | payloads.content(detail, request.context.masks) if request.user.payloads else told


QUERIES = (
    ApiEndpoint(
        path="/statistics",
        summary="The numbers of the overview, formatted",
        answer=live_statistics,
        returns=models.LiveStatisticsJson,
    ),
    ApiEndpoint(
        path="/status",
        summary="Whether events flow, and the reason if not",
        answer=status,
        returns=models.FlowStatusJson,
    ),
    ApiEndpoint(
        path="/timeseries",
        summary="Rates and latencies over time",
        answer=timeseries,
        returns=models.TimeSeriesJson,
        fields={"window": ", ".join(WINDOWS)},
        schemas={"window": choice(WINDOWS)},
    ),
    ApiEndpoint(
        path="/events",
        summary="List events, newest first, in pages",
        answer=events,
        returns=models.EventPageJson,
        fields={
            "state": ", ".join(EventState),
            "status": "PENDING, PROCESSING, PUBLISHED or FAILED: each combines several states",
            **_EVENTS,
            "until": "recorded before; format as since",
            "aggregate": "an aggregate type such as ORDER, or one aggregate such as ORDER:42",
            "error": "a part of the last error",
            "after": "cursor from the previous page",
        },
        schemas={"limit": _LIMIT},
    ),
    ApiEndpoint(
        path="/events/states", summary="Count the events in each state", answer=states, returns=models.StateCountsJson
    ),
    ApiEndpoint(
        path="/event",
        summary="Show one event with its failed sends",
        answer=event,
        returns=models.EventReportJson,
        fields={"id": "its id"},
        required=("id",),
    ),
    ApiEndpoint(
        path="/dead",
        summary="List dead letters, newest first, in pages",
        answer=dead,
        returns=models.DeadLetterPageJson,
        fields={
            "id": "an event id",
            **_EVENTS,
            "group": "the fingerprint of a group",
            "error": "a part of the error",
            "after": "cursor from the previous page",
        },
        schemas={"limit": _LIMIT, "after": _LAST_ROW},
    ),
    ApiEndpoint(
        path="/dead/groups",
        summary="List dead letters by reason, largest group first, in pages",
        answer=dead_groups,
        returns=models.DeadLetterGroupsJson,
        fields={
            "id": "an event id",
            **_EVENTS,
            "error": "a part of the error",
            "after": "cursor from the previous page",
        },
        schemas={"limit": _LIMIT, "after": number(1, MOST_GROUPS)},
    ),
    ApiEndpoint(
        path="/destinations",
        summary="Destinations with state, pending messages, rates and overrides",
        answer=destinations,
        returns=outbox_models.DestinationsJson,
    ),
    ApiEndpoint(
        path="/destination",
        summary="One destination, with the messages published per second in the last hour, a value per minute",
        answer=destination,
        returns=outbox_models.DestinationPageJson,
        fields={"name": "its name"},
        required=("name",),
    ),
    ApiEndpoint(path="/keys", summary="Blocked and busiest ordering keys", answer=keys, returns=models.KeysJson),
    ApiEndpoint(
        path="/keys/groups",
        summary="Keys that are blocked until an operator decides, by reason, the largest group first",
        answer=key_groups,
        returns=models.BlockedGroupsJson,
    ),
    ApiEndpoint(
        path="/relays", summary="Relays with lanes and breakers", answer=relays, returns=outbox_models.RelaysJson
    ),
    ApiEndpoint(path="/inbox", summary="Per-consumer inbox statistics", answer=inbox, returns=outbox_models.InboxJson),
    ApiEndpoint(
        path="/store",
        summary="Schema version, table sizes and the oldest transaction",
        answer=store,
        returns=outbox_models.StoreJson,
    ),
    ApiEndpoint(
        path="/audit",
        summary="Audit entries, newest first, in pages",
        answer=audit,
        returns=outbox_models.AuditPageJson,
        fields={
            "who": "a name",
            "what": "an action",
            "since": _EVENTS["since"],
            "after": "cursor from the previous page",
        },
        schemas={"after": _LAST_ROW},
    ),
    ApiEndpoint(
        path="/doctor",
        summary="Findings of the doctor, at most half a minute old; changes nothing",
        answer=doctor,
        returns=outbox_models.DoctorJson,
        timeout=LONG_TIMEOUT,
    ),
)
