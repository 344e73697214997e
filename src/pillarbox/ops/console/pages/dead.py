"""Dead letters: by reason or one by one, sent again, dropped, taken away as a file."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Mapping

from starlette.responses import Response, StreamingResponse

from pillarbox.core.browsing import EventFilter
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops import decisions, exports
from pillarbox.ops.console import words
from pillarbox.ops.console.filters import LETTER_FIELDS, MOST, given, letter_filter, letter_page
from pillarbox.ops.console.visiting import Refused, Visit
from pillarbox.ops.decisions import Choice, Decision
from pillarbox.ops.grouping import groups, is_fingerprint

CHOICE_FIELDS = (*LETTER_FIELDS, "group")
PATIENCE = 10.0
"""Seconds in which what a decision is about must be counted; each statement has a bound of its own."""
_DONE = {"retry": "sent again", "discard": "dropped"}


async def dead(visit: Visit) -> Response:
    """By reason, or with view=letters one by one."""
    store, asked = visit.desk.store, given(visit.query, LETTER_FIELDS)
    held = await store.browsing.events(EventFilter(blocked=True), limit=1)
    common = {"asked": asked, "held": bool(held.events)}
    if visit.query.get("view") == "letters":
        page = await letter_page(store, visit.query)
        return visit.render("dead_letters.html", page=page, command=command(asked), **common)
    found = await groups(store, letter_filter(asked))
    return visit.render("dead_groups.html", found=found, command=command(asked, "groups"), **common)


async def export(visit: Visit) -> Response:
    """Every dead letter that fits, a line of JSON each, without payloads."""
    wanted, store = letter_filter(visit.query), visit.desk.store

    async def lines() -> AsyncIterator[str]:
        before: int | None = None
        while True:
            page = await store.browsing.letters(wanted, limit=MOST, before=before)
            for letter in page.letters:
                yield json.dumps(exports.listed_letter(letter), ensure_ascii=False) + "\n"
            if (before := page.before) is None:
                return

    headers = {"content-disposition": 'attachment; filename="dead-letters.ndjson"'}
    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=headers)


async def confirm(visit: Visit) -> Response:
    """How many it would be, exactly."""
    asked, do = given(visit.query, CHOICE_FIELDS), decision_of(visit.query.get("do", ""))
    choice = await chosen(visit, asked)
    return visit.render("confirm_dead.html", do=do, asked=asked, choice=choice, command=command(asked, do))


async def decide(visit: Visit) -> Response:
    """Everything that fits, if that is still as many as were confirmed."""
    posted = {name: str(value) for name, value in visit.form.items() if str(value).strip()}
    asked, do = given(posted, CHOICE_FIELDS), decision_of(posted.get("do", ""))
    choice = await chosen(visit, asked)
    if str(choice.count) != posted.get("count"):
        raise Refused(409, f"Meanwhile it would be {choice.count:,}. Go back, look again, and confirm that number.")
    done, requested = await decisions.carry_out(visit.desk.store, do, choice, by=visit.person.name)
    return visit.go("/dead", told(do, choice, done, requested))


async def chosen(visit: Visit, asked: Mapping[str, str], event_ids: list[str] | None = None) -> Choice:
    """What a decision is about. Raises Refused if there is too much of it, ConfigurationError for a wrong filter."""
    group = asked.get("group")
    if group is not None and not is_fingerprint(group):
        raise ConfigurationError(f"{group!r} is no group of dead letters: it has twelve hexadecimal digits")
    try:
        async with asyncio.timeout(PATIENCE):
            return await decisions.choose(visit.desk.store, event_ids or (), letter_filter(asked), group=group)
    except TimeoutError:
        raise Refused(
            413, f"There is too much to be counted in {PATIENCE:g} s: narrow the filter, or use the command line."
        ) from None


def told(do: Decision, choice: Choice, done: int, requested: int) -> str:
    """What became of it."""
    said = f"{words.plural(done, 'dead letter')} {_DONE[do]}."
    if requested:
        said += f" {words.plural(requested, 'event')} that held a key: asked of the relays."
    if left := len(choice.letters) - done:
        said += f" {left:,} stay: the same event already waits, or somebody was faster."
    return said


def decision_of(text: str) -> Decision:
    """Raises ConfigurationError."""
    match text:
        case "retry" | "discard":
            return text
        case _:
            raise ConfigurationError(f"{text!r} is nothing that can be done with dead letters: retry or discard them")


def command(asked: Mapping[str, str], verb: str = "list") -> str:
    """The same on a command line."""
    ids = [shlex.quote(asked["id"])] if "id" in asked else []
    options = [f"--{name} {shlex.quote(value)}" for name, value in asked.items() if name != "id"]
    return " ".join(["pillarbox", "dead", verb, *ids, *options])
