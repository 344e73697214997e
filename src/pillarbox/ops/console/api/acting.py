"""What the API does: through the functions that the pages and the commands use, under the name of who asks."""

from __future__ import annotations

from typing import Any

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import amending, asking, decisions
from pillarbox.ops.acts import Scope
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.api.endpoint import Endpoint
from pillarbox.ops.console.counting import check_count
from pillarbox.ops.console.fields import is_yes, texts_of
from pillarbox.ops.console.filters import EVENT_FIELDS, event_filter
from pillarbox.ops.console.pages.acting import action_of, delay_of, do_to_event, pause_or_resume, waiting_for
from pillarbox.ops.console.pages.dead import CHOICE_FIELDS, chosen
from pillarbox.ops.console.pages.destinations import steer_one
from pillarbox.ops.console.pages.editing import amend, letter_of
from pillarbox.ops.console.pages.replays import FIELDS as REPLAY_FIELDS
from pillarbox.ops.console.pages.replays import begun
from pillarbox.ops.console.pages.running import do_to_head, drain_one
from pillarbox.ops.console.visiting import Visit
from pillarbox.ops.decisions import Decision
from pillarbox.ops.ndjson import payload_of
from pillarbox.record.encoding import encode

_FILTER = "filter, as for GET"
_CONFIRMED = {
    "count": "the number that was confirmed: if it is another by now, nothing is done",
    "dry_run": "true: count, and change nothing",
}
_CHOICE = {
    "ids": "event ids; without them, what fits the filter",
    **dict.fromkeys(CHOICE_FIELDS, _FILTER),
    "all": "true: everything that was given up; without it, ids or a filter must be there",
    **_CONFIRMED,
}


async def retry(visit: Visit) -> dict[str, Any]:
    return await _decide(visit, "retry")


async def discard(visit: Visit) -> dict[str, Any]:
    return await _decide(visit, "discard")


async def _decide(visit: Visit, decision: Decision) -> dict[str, Any]:
    body, store = visit.form, visit.desk.store
    ids = _texts("ids", body.get("ids") or [])
    asked = texts_of(body, CHOICE_FIELDS)
    if not (ids or asked or is_yes(body, "all")):
        raise ConfigurationError("name events by ids, give a filter, or say all")
    choice = await chosen(visit, asked, ids)
    if "count" in body:
        check_count(choice.count, body["count"])
    done = requested = 0
    dry_run = is_yes(body, "dry_run")
    if not dry_run:
        done, requested = await decisions.carry_out(store, decision, choice, by=visit.person.name)
    return {"matched": choice.count, "done": done, "requested": requested, "dry_run": dry_run}


async def edit(visit: Visit) -> dict[str, Any]:
    body = visit.form
    letter = await letter_of(visit, body.get("letter"), gone=409)
    payload, headers = payload_of(body), body.get("headers") or {}
    if not isinstance(headers, dict):
        raise ConfigurationError("headers is no object")
    change = amending.amendment(
        letter,
        payload=None if payload is None else encode(payload),
        headers=headers,
        removed=_texts("removed", body.get("removed") or []),
        max_payload=visit.desk.max_payload,
    )
    dry_run = is_yes(body, "dry_run")
    done = change.changes and not dry_run
    if done:
        await amend(visit, letter, change)
    facts = {"event_id": letter.event_id, "destination": letter.destination, "letter": letter.letter}
    return facts | change.told | {"changed": change.changes, "done": done, "dry_run": dry_run}


async def act_on_event(visit: Visit) -> dict[str, Any]:
    return {"said": await do_to_event(visit)}


async def act_on_events(visit: Visit) -> dict[str, Any]:
    body = visit.form
    asked, do = texts_of(body, EVENT_FIELDS), action_of(str(body.get("do", "")))
    if not asked:
        raise ConfigurationError("say which events that wait are meant: give a filter")
    delay = delay_of(body) if do == "reschedule" else 0
    waiting = await waiting_for(visit, asked)
    if "count" in body:
        check_count(len(waiting), body["count"])
    requested, dry_run = 0, is_yes(body, "dry_run")
    if not dry_run:
        scope = Scope(wanted=event_filter(asked))
        requested = await asking.ask(visit.desk.store, do, waiting, scope, delay=delay, by=visit.person.name)
    return {"matched": len(waiting), "requested": requested, "dry_run": dry_run}


async def steer(visit: Visit) -> dict[str, Any]:
    return {"said": await steer_one(visit)}


async def everything(visit: Visit) -> dict[str, Any]:
    return {"said": await pause_or_resume(visit)}


async def drain(visit: Visit) -> dict[str, Any]:
    return {"said": await drain_one(visit)}


async def head(visit: Visit) -> dict[str, Any]:
    return {"said": await do_to_head(visit)}


async def replay(visit: Visit) -> dict[str, Any]:
    progress, said, visit.later = await begun(visit)
    return {"replay": progress.number, "said": said}


def _texts(name: str, given: object) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ConfigurationError(f"{name} is no list of texts")
    return given


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
        path="/dead/edit",
        summary="Send a dead letter again with another payload or other headers; needs the right to see payloads, too",
        answer=edit,
        fields={
            "letter": "its number",
            "payload": "the new payload as JSON",
            "payload_base64": "the new payload as bytes",
            "headers": "an object of headers to be set",
            "removed": "names of headers to be taken away",
            "dry_run": "true: tell what would change, and change nothing",
        },
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
        path="/events/act",
        summary="Send all events that wait and fit now or later, or drop them",
        answer=act_on_events,
        fields={
            "do": "retry, discard, reschedule or bury",
            "delay": "for reschedule, such as 10 min",
            **dict.fromkeys(EVENT_FIELDS, _FILTER),
            **_CONFIRMED,
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
            "force": "true: take a name that nobody knows, of a destination that will come",
        },
        posts=True,
        needs=_OPERATOR,
    ),
    Endpoint(
        path="/keys/head",
        summary="Send the head of a key that stands still again, or make a dead letter of it",
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
