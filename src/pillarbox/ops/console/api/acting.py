"""What the API does: through the functions that the pages and the commands use, under the name of who asks."""

from __future__ import annotations

from typing import Any

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import decisions
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.api.endpoint import Endpoint
from pillarbox.ops.console.pages.acting import do_to_event, pause_or_resume
from pillarbox.ops.console.pages.dead import CHOICE_FIELDS, chosen
from pillarbox.ops.console.pages.destinations import steer_one
from pillarbox.ops.console.pages.replays import FIELDS as REPLAY_FIELDS
from pillarbox.ops.console.pages.replays import begun
from pillarbox.ops.console.pages.running import do_to_head, drain_one
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.ops.decisions import Decision

_CHOICE = {
    "ids": "event ids; without them, what fits the filter",
    **{name: "filter, as for GET" for name in CHOICE_FIELDS if name != "id"},
    "all": "true: everything that was given up; without it, ids or a filter must be there",
    "count": "the number that was confirmed: if it is another by now, nothing is done",
    "dry_run": "true: count, and change nothing",
}


async def retry(visit: Visit) -> dict[str, Any]:
    return await _decide(visit, "retry")


async def discard(visit: Visit) -> dict[str, Any]:
    return await _decide(visit, "discard")


async def _decide(visit: Visit, decision: Decision) -> dict[str, Any]:
    body, store = visit.form, visit.desk.store
    ids = body.get("ids") or []
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise ConfigurationError("ids is no list of texts")
    asked = {name: str(body[name]) for name in CHOICE_FIELDS if body.get(name)}
    if not (ids or asked or body.get("all") is True):
        raise ConfigurationError("name events by ids, give a filter, or say all")
    choice = await chosen(visit, asked, ids)
    if "count" in body and body["count"] != choice.count:
        raise Refused(409, f"meanwhile it would be {choice.count}")
    done = requested = 0
    dry_run = body.get("dry_run") is True
    if not dry_run:
        done, requested = await decisions.carry_out(store, decision, choice, by=visit.person.name)
    return {"matched": choice.count, "done": done, "requested": requested, "dry_run": dry_run}


async def act_on_event(visit: Visit) -> dict[str, Any]:
    return {"said": await do_to_event(visit)}


async def steer(visit: Visit) -> dict[str, Any]:
    return {"said": await steer_one(visit)}


async def everything(visit: Visit) -> dict[str, Any]:
    return {"said": await pause_or_resume(visit)}


async def drain(visit: Visit) -> dict[str, Any]:
    return {"said": await drain_one(visit)}


async def head(visit: Visit) -> dict[str, Any]:
    return {"said": await do_to_head(visit)}


async def replay(visit: Visit) -> dict[str, Any]:
    progress, rest = await begun(visit)
    visit.later = rest
    return {"replay": progress.number}


_OPERATOR = Role.OPERATOR

ACTIONS = (
    Endpoint(
        path="/dead/retry",
        summary="Send dead letters again",
        answer=retry,
        fields=_CHOICE,
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/dead/discard",
        summary="Drop dead letters for good",
        answer=discard,
        fields=_CHOICE,
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/event/act",
        summary="Send one event now or later, or drop it",
        answer=act_on_event,
        fields={
            "id": "its id",
            "destination": "on its way there",
            "do": "retry, discard, reschedule or bury",
            "delay": "for reschedule, such as 10 min",
        },
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/everything",
        summary="Pause or resume every destination",
        answer=everything,
        fields={"do": "pause or resume"},
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/destinations/steer",
        summary="Pause, resume, limit a destination, or hold its breaker; the last two need the role admin",
        answer=steer,
        fields={
            "destination": "its name",
            "do": "pause, resume, open, closed, release or limit",
            "limit": "for limit, such as 500/s; empty: none",
        },
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/keys/head",
        summary="Send the head of a blocked key again, or make a dead letter of it",
        answer=head,
        fields={"id": "the event's id", "destination": "on its way there", "do": "retry or bury"},
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/replay",
        summary="Send once more what was delivered, as new events; it goes on after the answer",
        answer=replay,
        fields=dict.fromkeys(REPLAY_FIELDS, "as `pillarbox replay` has it"),
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/relays/drain",
        summary="Ask a relay to drain and end",
        answer=drain,
        fields={"relay": "its id"},
        posts=True,
        needs=_OPERATOR,
    ),
)
