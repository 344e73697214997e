"""Dead letters: listed by reason or one by one, retried, discarded, exported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterPage
from pillarbox.admin.listing import EventFilter
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import dead_letter_actions
from pillarbox.ops.console import command_line, formatting, payloads
from pillarbox.ops.console.bulk_counts import check_confirmed, with_count_timeout
from pillarbox.ops.console.downloads import stream_file
from pillarbox.ops.console.fields import TOKEN, check_names
from pillarbox.ops.console.filters import (
    DEAD_LETTER_FIELDS,
    dead_letter_filter,
    dead_letter_page,
    found_or,
    given,
    group_of,
)
from pillarbox.ops.console.pages.messages import answer
from pillarbox.ops.console.request import ConsoleRequest
from pillarbox.ops.dead_letter_actions import DeadLetterAction, DeadLetterSelection
from pillarbox.ops.dead_letter_export import lines
from pillarbox.ops.dead_letter_groups import Groups, groups

SELECTION_FIELDS = (*DEAD_LETTER_FIELDS, "group")
_DONE = {"retry": "retried", "discard": "discarded"}


async def dead(request: ConsoleRequest) -> Response:
    """Show dead letters by reason, or with view=list one by one."""
    store, asked = request.store, given(request.query, SELECTION_FIELDS)
    held = await store.admin.events.list(EventFilter(state=EventState.BLOCKED), limit=1)
    one_by_one, narrowed = request.query.get("view") == "list", given(asked, DEAD_LETTER_FIELDS)
    common: dict[str, object] = {
        "asked": asked if one_by_one else narrowed,
        "narrowed": narrowed,
        "held": bool(held.events),
    }
    known = request.context.known_destinations
    if one_by_one:
        page, wrong = await found_or(DeadLetterPage([], None), dead_letter_page(store, request.query))
        common |= {"wrong": wrong, "known_destinations": known(one.destination for one in page.dead_letters)}
        return await request.render("dead_letters.html", page=page, command=command(narrowed), **common)
    found, wrong = await found_or(Groups([], complete=True), _groups(store, narrowed))
    common |= {"wrong": wrong, "known_destinations": known(group.destination for group in found.groups)}
    return await request.render("dead_groups.html", found=found, command=command(narrowed, "groups"), **common)


async def _groups(store: AdminStore, asked: Mapping[str, str]) -> Groups:
    """Raises ConfigurationError."""
    return await groups(store, dead_letter_filter(asked))


async def export(request: ConsoleRequest) -> Response:
    """Export matching dead letters, one line of JSON each; payloads only for users who may see them."""
    content = partial(payloads.content, masks=request.context.masks) if request.user.payloads else None
    found = lines(
        request.store,
        dead_letter_filter(request.query),
        content,
        group=group_of(request.query),
        hide=request.context.masks.response,
    )
    return await stream_file(found, "dead-letters.ndjson", media_type="application/x-ndjson")


async def confirm(request: ConsoleRequest) -> Response:
    """Ask for confirmation, with the exact number."""
    check_names(request.query, (*SELECTION_FIELDS, "action"))
    asked, action = given(request.query, SELECTION_FIELDS), dead_letter_action_of(request.query.get("action", ""))
    selection = await selected(request, asked)
    return await request.render(
        "confirm_dead_letters.html",
        action=action,
        asked=asked,
        selection=selection,
        digest=await selection.digest(),
        command=command(asked, action),
    )


async def decide(request: ConsoleRequest) -> Response:
    """Act on every matching dead letter, if they are still the confirmed ones."""
    check_names(request.form, (*SELECTION_FIELDS, "action", "count", "selection", TOKEN))
    posted = {name: str(value) for name, value in request.form.items() if str(value).strip()}
    asked, action = given(posted, SELECTION_FIELDS), dead_letter_action_of(posted.get("action", ""))
    selection = await selected(request, asked)
    check_confirmed(selection.count, await selection.digest(), posted, required=True)
    done, requested = await dead_letter_actions.execute(request.store, action, selection, by=request.user.name)
    return request.redirect("/dead", await describe_result(request, action, selection, done, requested))


async def selected(
    request: ConsoleRequest, asked: Mapping[str, str], event_ids: list[str] | None = None
) -> DeadLetterSelection:
    """Select the dead letters. Raises RequestError if that takes too long, ConfigurationError for a wrong filter."""
    selection = dead_letter_actions.select(
        request.store, event_ids or (), dead_letter_filter(asked), group=group_of(asked)
    )
    return await with_count_timeout(selection)


async def describe_result(
    request: ConsoleRequest, action: DeadLetterAction, selection: DeadLetterSelection, done: int, requested: int
) -> str:
    """Return the message to show."""
    said = f"{formatting.plural(done, 'dead letter')} {_DONE[action]}."
    if requested:
        held = f"{formatting.plural(requested, 'blocking event')}: requested from the relays."
        said = await answer(request, f"{said} {held}")
    if skipped := len(selection.dead_letters) - done:
        said += f" {skipped:,} skipped: already pending, or changed concurrently."
    return said


def dead_letter_action_of(text: str) -> DeadLetterAction:
    """Raises ConfigurationError."""
    match text:
        case "retry" | "discard":
            return text
        case _:
            raise ConfigurationError(f"unknown action {text!r}: use retry or discard")


def command(asked: Mapping[str, str], verb: str = "list") -> str:
    """Return the equivalent CLI command."""
    options = {name: value for name, value in asked.items() if name != "id"}
    if not asked and verb in _DONE:
        verb += " --all"
    return command_line.command(f"dead {verb}", asked.get("id"), options)
