"""Actions of the API. They use the functions of the pages and commands, under the name of the authenticated user."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, cast

from pillarbox.admin.requests import Action
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import dead_letter_actions, dead_letter_edit, erasure, operator_requests
from pillarbox.ops.blocked_keys import KeyAction, key_action_of
from pillarbox.ops.bulk_actions import Scope
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.api import outbox_models
from pillarbox.ops.console.api.endpoint import ApiEndpoint
from pillarbox.ops.console.api.field_schemas import choice, choice_of, number
from pillarbox.ops.console.bulk_counts import check_confirmed, with_count_timeout
from pillarbox.ops.console.fields import is_yes, texts_of
from pillarbox.ops.console.filters import EVENT_FIELDS, event_filter
from pillarbox.ops.console.pages.dead_letter_edit import amend, dead_letter_of
from pillarbox.ops.console.pages.dead_letters import SELECTION_FIELDS, selected
from pillarbox.ops.console.pages.destinations import OVERRIDES, override_destination
from pillarbox.ops.console.pages.keys import KEY_FIELDS, act_on_all, act_on_first
from pillarbox.ops.console.pages.keys import selected as selected_keys
from pillarbox.ops.console.pages.operator_requests import act_on_one, action_of, delay_of, select_pending, set_pause
from pillarbox.ops.console.pages.relays import drain_relay
from pillarbox.ops.console.pages.replays import FIELDS as REPLAY_FIELDS
from pillarbox.ops.console.pages.replays import LONGEST as LONGEST_REPLAY
from pillarbox.ops.console.pages.replays import start_replay
from pillarbox.ops.console.request import ConsoleRequest
from pillarbox.ops.dead_letter_actions import DeadLetterAction
from pillarbox.ops.ndjson import payload_of
from pillarbox.record.encoding import encode

_FILTER = "filter, as for GET"
_CONFIRMED = {
    "count": "the confirmed number: if the number of matches differs, the request fails and changes nothing",
    "selection": "`selection` of the dry run: if other events match, the request fails and changes nothing",
    "dry_run": "true: count only",
}
_SELECTION = {
    "ids": "event ids; without them, the matches of the filter",
    **dict.fromkeys(SELECTION_FIELDS, _FILTER),
    "all": "true: all dead letters; otherwise ids or a filter are required",
    **_CONFIRMED,
}


async def retry(request: ConsoleRequest) -> dict[str, Any]:
    return await _act_on_dead_letters(request, "retry")


async def discard(request: ConsoleRequest) -> dict[str, Any]:
    return await _act_on_dead_letters(request, "discard")


async def _act_on_dead_letters(request: ConsoleRequest, action: DeadLetterAction) -> dict[str, Any]:
    body, store = request.form, request.store
    ids = cast("list[str]", body.get("ids", []))
    asked = texts_of(body, SELECTION_FIELDS)
    if not (ids or asked or is_yes(body, "all")):
        raise ConfigurationError("no dead letters selected: give ids, a filter or all")
    selection = await selected(request, asked, ids)
    check_confirmed(selection.count, digest := await selection.digest(), body)
    done = requested = 0
    dry_run = is_yes(body, "dry_run")
    if not dry_run:
        done, requested = await dead_letter_actions.execute(store, action, selection, by=request.user.name)
    return {
        "matched": selection.count,
        "selection": digest,
        "done": done,
        "requested": requested,
        "dry_run": dry_run,
    }


async def edit(request: ConsoleRequest) -> dict[str, Any]:
    body = request.form
    dead_letter = await dead_letter_of(request, body.get("dead_letter_id"), gone=409)
    payload = payload_of(body)
    change = dead_letter_edit.amendment(
        dead_letter,
        payload=None if payload is None else encode(payload),
        headers=cast("dict[str, Any]", body.get("headers", {})),
        removed=cast("list[str]", body.get("removed", [])),
        max_payload=request.context.max_payload,
    )
    dry_run = is_yes(body, "dry_run")
    done = change.changes and not dry_run
    if done:
        await amend(request, dead_letter, change)
    facts = {
        "event_id": dead_letter.event_id,
        "destination": dead_letter.destination,
        "dead_letter_id": dead_letter.dead_letter_id,
    }
    return facts | change.summary | {"changed": change.changes, "done": done, "dry_run": dry_run}


async def act_on_event(request: ConsoleRequest) -> dict[str, Any]:
    return {"message": await act_on_one(request)}


async def act_on_events(request: ConsoleRequest) -> dict[str, Any]:
    body = request.form
    asked, action = texts_of(body, EVENT_FIELDS), action_of(str(body.get("action", "")))
    if not asked:
        raise ConfigurationError("no events selected: give a filter")
    delay = delay_of(body) if action == "reschedule" else 0
    waiting = await select_pending(request, asked)
    check_confirmed(len(waiting), digest := await waiting.digest(), body)
    requested, dry_run = 0, is_yes(body, "dry_run")
    if not dry_run:
        scope = Scope(wanted=event_filter(asked))
        requested = await operator_requests.request_all(
            request.store, action, waiting, scope, delay=delay, by=request.user.name
        )
    return {"matched": len(waiting), "selection": digest, "requested": requested, "dry_run": dry_run}


async def override(request: ConsoleRequest) -> dict[str, Any]:
    return {"message": await override_destination(request)}


async def everything(request: ConsoleRequest) -> dict[str, Any]:
    return {"message": await set_pause(request)}


async def drain(request: ConsoleRequest) -> dict[str, Any]:
    return {"message": await drain_relay(request)}


async def act_on_key(request: ConsoleRequest) -> dict[str, Any]:
    return {"message": await act_on_first(request)}


async def act_on_keys(request: ConsoleRequest) -> dict[str, Any]:
    body = request.form
    asked, action = texts_of(body, KEY_FIELDS), key_action_of(str(body.get("action", "")))
    if not (asked or is_yes(body, "all")):
        raise ConfigurationError("no keys selected: give a filter, a group or all")
    pending = await selected_keys(request, asked)
    check_confirmed(len(pending), digest := await pending.digest(), body)
    dry_run = is_yes(body, "dry_run")
    if not dry_run:
        await act_on_all(request, action, asked, pending)
    requested = 0 if dry_run else len(pending)
    return {"matched": len(pending), "selection": digest, "requested": requested, "dry_run": dry_run}


async def erase(request: ConsoleRequest) -> dict[str, Any]:
    body = request.form
    aggregate = str(body.get("aggregate", ""))
    found = await with_count_timeout(erasure.find(request.store, aggregate))
    check_confirmed(len(found), digest := await found.digest(), body)
    dry_run = is_yes(body, "dry_run")
    if not dry_run and found:
        done = await erasure.erase(request.store, aggregate, found, by=request.user.name)
    else:
        done = found.counted()
    return asdict(done) | {"selection": digest, "dry_run": dry_run}


async def replay(request: ConsoleRequest) -> dict[str, Any]:
    progress, said, request.later = await start_replay(request)
    return {"replay": progress.number, "message": said}


_OPERATOR = Role.OPERATOR

ACTIONS = (
    ApiEndpoint(
        path="/dead/retry",
        summary="Retry dead letters",
        answer=retry,
        returns=outbox_models.DeadLetterResultJson,
        fields=_SELECTION,
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/dead/discard",
        summary="Discard dead letters permanently",
        answer=discard,
        returns=outbox_models.DeadLetterResultJson,
        fields=_SELECTION,
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/dead/edit",
        summary="Retry a dead letter with edited payload or headers; also needs the right to see payloads",
        answer=edit,
        returns=outbox_models.EditResultJson,
        fields={
            "dead_letter_id": "its id",
            "payload": "the new payload as JSON",
            "payload_base64": "the new payload as bytes",
            "headers": "an object of headers to set",
            "removed": "names of headers to remove",
            "dry_run": "true: return the changes only",
        },
        required=("dead_letter_id",),
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/event/act",
        summary="Retry, reschedule, discard or dead-letter one event",
        answer=act_on_event,
        returns=outbox_models.MessageJson,
        fields={
            "id": "its id",
            "destination": "its destination",
            "action": "retry, discard, reschedule or dead_letter",
            "delay": "for reschedule, such as 10 min",
        },
        required=("id", "destination", "action"),
        schemas={"action": choice_of(Action)},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/events/act",
        summary="Retry, reschedule, discard or dead-letter all matching pending events",
        answer=act_on_events,
        returns=outbox_models.RequestedJson,
        fields={
            "action": "retry, discard, reschedule or dead_letter",
            "delay": "for reschedule, such as 10 min",
            **dict.fromkeys(EVENT_FIELDS, _FILTER),
            **_CONFIRMED,
        },
        required=("action",),
        schemas={"action": choice_of(Action)},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/events/erase",
        summary="Erase all events of one aggregate; archive files are erased on the command line",
        answer=erase,
        returns=outbox_models.ErasureJson,
        fields={"aggregate": "its type and its id, such as CUSTOMER:42", **_CONFIRMED},
        required=("aggregate",),
        posts=True,
        needs=Role.ADMIN,
    ),
    ApiEndpoint(
        path="/everything",
        summary="Pause or resume every destination",
        answer=everything,
        returns=outbox_models.MessageJson,
        fields={"action": "pause or resume"},
        required=("action",),
        schemas={"action": choice(["pause", "resume"])},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/destinations/override",
        summary="Pause, resume or limit a destination, or force its breaker; the last two need the role admin",
        answer=override,
        returns=outbox_models.MessageJson,
        fields={
            "destination": "its name",
            "action": "pause, resume, open, closed, release or limit",
            "limit": "for limit, such as 500/s; empty: remove the limit",
            "force": "true: accept the name of an unknown destination",
        },
        required=("destination", "action"),
        schemas={"action": choice(OVERRIDES), "limit": {"type": "string"}},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/keys/act",
        summary="Retry, skip or discard the event that holds a key back",
        answer=act_on_key,
        returns=outbox_models.MessageJson,
        fields={"id": "the event's id", "destination": "its destination", "action": "retry, skip or discard"},
        required=("id", "destination", "action"),
        schemas={"action": choice_of(KeyAction)},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/keys/decide",
        summary="Retry, skip or discard the events that block matching keys",
        answer=act_on_keys,
        returns=outbox_models.RequestedJson,
        fields={
            "action": "retry; skip: dead-letter the event, so that its key continues; or discard",
            **dict.fromkeys(KEY_FIELDS, "filter, as in `pillarbox keys retry`"),
            "all": "true: all blocked keys; otherwise a filter is required",
            **_CONFIRMED,
        },
        required=("action",),
        schemas={"action": choice_of(KeyAction)},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/replay",
        summary="Send delivered events again as new events; continues after the response",
        answer=replay,
        returns=outbox_models.ReplayStartedJson,
        fields=dict.fromkeys(REPLAY_FIELDS, "as in `pillarbox replay`"),
        schemas={"limit": number(1, LONGEST_REPLAY)},
        posts=True,
        needs=_OPERATOR,
    ),
    ApiEndpoint(
        path="/relays/drain",
        summary="Request a relay to drain and stop",
        answer=drain,
        returns=outbox_models.MessageJson,
        fields={"relay": "its id"},
        required=("relay",),
        posts=True,
        needs=_OPERATOR,
    ),
)
