"""Ordering keys: blocked ones, by reason and one by one, and the busiest."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from pillarbox.admin.keys import SAMPLED, WAITING_COUNTED
from pillarbox.ops import blocked_keys
from pillarbox.ops.blocked_keys import KeyAction, key_action_of
from pillarbox.ops.console import command_line, formatting
from pillarbox.ops.console.bulk_counts import check_confirmed, with_count_timeout
from pillarbox.ops.console.fields import TOKEN, check_names
from pillarbox.ops.console.filters import event_filter, given, group_of
from pillarbox.ops.console.pages.messages import answer
from pillarbox.ops.console.request import ConsoleRequest, RequestError
from pillarbox.ops.operator_requests import Pending

KEY_FIELDS = ("type", "key", "destination", "error", "group")
_RESULTS: dict[KeyAction, str] = {
    "retry": "the relays that own their lanes retry them within two seconds.",
    "skip": "the relays that own their lanes dead-letter them and continue with the next event of each key.",
    "discard": "the relays that own their lanes delete them and continue with the next event of each key.",
}


async def keys(request: ConsoleRequest) -> Response:
    return await request.render(
        "keys.html",
        found=await blocked_keys.groups(request.store),
        blocked=await request.store.admin.keys.blocked(),
        busiest=await request.store.admin.keys.busiest(),
        counted=WAITING_COUNTED,
        sample=SAMPLED,
    )


async def post_action(request: ConsoleRequest) -> Response:
    return request.redirect("/keys", await act_on_first(request))


async def act_on_first(request: ConsoleRequest) -> str:
    """Retry, skip or discard the event that holds a key back. Returns the message to show."""
    event_id, destination = (str(request.form.get(name, "")) for name in ("id", "destination"))
    action = key_action_of(str(request.form.get("action", "")))
    found = await blocked_keys.select_by_id(request.store, [event_id])
    if (event_id, destination) not in found.events:
        raise RequestError(404, f"Event {event_id!r} blocks no key of {destination!r}.")
    chosen = Pending(events=[(event_id, destination)])
    await blocked_keys.execute(
        request.store, action, chosen, wanted=event_filter({}), event_ids=[event_id], by=request.user.name
    )
    return await answer(request, f"Requested for 1 event: {_RESULTS[action]}")


async def confirm(request: ConsoleRequest) -> Response:
    """Ask for confirmation, with the exact number of blocked keys."""
    check_names(request.query, (*KEY_FIELDS, "action"))
    asked, action = given(request.query, KEY_FIELDS), key_action_of(request.query.get("action", ""))
    pending = await selected(request, asked)
    return await request.render(
        "confirm_keys.html",
        action=action,
        asked=asked,
        pending=pending,
        digest=await pending.digest(),
        command=command(request, action, asked),
    )


async def decide(request: ConsoleRequest) -> Response:
    """Act on every matching blocked key, if they are still the confirmed ones."""
    check_names(request.form, (*KEY_FIELDS, "action", "count", "selection", TOKEN))
    posted = {name: str(value) for name, value in request.form.items() if str(value).strip()}
    asked, action = given(posted, KEY_FIELDS), key_action_of(posted.get("action", ""))
    pending = await selected(request, asked)
    check_confirmed(len(pending), await pending.digest(), posted, required=True)
    return request.redirect("/keys", await act_on_all(request, action, asked, pending))


async def act_on_all(request: ConsoleRequest, action: KeyAction, asked: Mapping[str, str], pending: Pending) -> str:
    """Request the action for all selected events. Returns the message to show."""
    done = await blocked_keys.execute(
        request.store,
        action,
        pending,
        wanted=event_filter(_without_group(asked)),
        group=group_of(asked),
        by=request.user.name,
    )
    return await answer(request, f"Requested for {formatting.plural(done, 'event')}: {_RESULTS[action]}")


async def selected(request: ConsoleRequest, asked: Mapping[str, str]) -> Pending:
    """Select the blocking events. Raises RequestError if that takes too long, ConfigurationError for a wrong filter."""
    wanted = event_filter(_without_group(asked))
    return await with_count_timeout(blocked_keys.select(request.store, wanted, group=group_of(asked)))


def command(request: ConsoleRequest, action: KeyAction, asked: Mapping[str, str]) -> str:
    """Return the equivalent CLI command; where text is masked, groups have other names there."""
    if "group" in asked and request.context.masks.texts:
        return "pillarbox keys groups"
    return command_line.command(f"keys {action}" + ("" if asked else " --all"), options=asked)


def _without_group(asked: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in asked.items() if name != "group"}
