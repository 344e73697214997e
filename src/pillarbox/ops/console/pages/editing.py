"""Edit and retry: a dead letter goes out again with a payload or headers that a person put right.

What must stay true: nobody edits what they may not see. Whoever saves a payload without what rules hide would destroy
it, so a letter that has anything to hide is not edited here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from pillarbox.admin.dead_letters import Amendment
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.ops.console import command_line, payloads
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.filters import whole
from pillarbox.ops.console.letter_form import LetterForm, Line, compared
from pillarbox.ops.console.visiting import Refused, Visit, check_role


async def edit(visit: Visit) -> Response:
    """The form, with the letter as it is."""
    letter = await letter_of(visit, visit.query.get("letter"), gone=404)
    return await _form(visit, letter, LetterForm.of(letter))


async def decide(visit: Visit) -> Response:
    """What was typed: shown as what would change, and with do=send sent; if it cannot be, it comes back on the form."""
    letter = await letter_of(visit, visit.form.get("letter"), gone=409)
    typed, do = LetterForm.of(letter).filled(visit.form), visit.form.get("do")
    if do == "edit":
        return await _form(visit, letter, typed)
    try:
        change = typed.amendment(letter, max_payload=visit.desk.max_payload)
    except RecordError as error:
        return await _form(visit, letter, typed, wrong=str(error))
    if not change.changes:
        return await _form(
            visit, letter, typed, wrong="Nothing would change. Retry on the page of the event sends it as it is."
        )
    if do == "send":
        await amend(visit, letter, change)
        said = f"Dead letter {letter.letter} sent again with another content."
        return visit.go("/event", said, id=letter.event_id, destination=letter.destination)
    return await _confirm(visit, letter, typed, change)


async def letter_of(visit: Visit, number: object, *, gone: int) -> EventDetail:
    """Raises Refused if this person may not edit it, or if it is `gone`, with that status; ConfigurationError."""
    check_role(visit.person, Role.OPERATOR)
    if not visit.person.payloads:
        raise Refused(403, "Payloads are hidden from you, so you cannot edit them: that is a right of its own.")
    wanted = whole(str(number), "letter", default=0, most=2**63 - 1)
    for letter in await visit.desk.store.admin.dead_letters.details([wanted]):
        if await asyncio.to_thread(payloads.hides, letter, visit.desk.masks):
            raise Refused(
                403,
                "Rules hide a part of this event, and whoever saved the rest would destroy that part. "
                f"Edit it where nothing is hidden: {command(letter)}",
            )
        return letter
    raise Refused(
        gone,
        f"Dead letter {wanted} is not here any more: somebody sent it again or dropped it, and the audit says who. "
        "Nothing was changed.",
    )


async def amend(visit: Visit, letter: EventDetail, change: Amendment) -> None:
    """Raises Refused if it cannot be done any more."""
    letters, number = visit.desk.store.admin.dead_letters, letter.letter or 0
    if not await letters.edit(number, payload=change.payload, headers=change.headers, by=visit.person.name):
        raise Refused(
            409,
            f"Dead letter {letter.letter} stays: event {letter.event_id!r} already waits for {letter.destination!r}, "
            "or somebody was faster. Look at the event before you try again.",
        )


def command(letter: EventDetail) -> str:
    """The same on a command line."""
    return command_line.command("dead edit", letter.event_id, {"letter": letter.letter})


async def _form(visit: Visit, letter: EventDetail, form: LetterForm, *, wrong: str = "") -> Response:
    return await visit.render(
        "dead_edit.html",
        letter=letter,
        form=form,
        first=LetterForm.of(letter),
        largest=payloads.SHOWN,
        wrong=wrong,
        command=command(letter),
    )


async def _confirm(visit: Visit, letter: EventDetail, typed: LetterForm, change: Amendment) -> Response:
    before = LetterForm.of(letter)
    after = LetterForm.of(letter._replace(payload=change.payload))
    return await visit.render(
        "dead_edit_confirm.html",
        letter=letter,
        kept={"letter": letter.letter} | {name: text for name, text in typed._asdict().items() if text is not None},
        payload=await _changes(before.payload, after.payload or typed.payload),
        headers=await _changes(before.headers, typed.headers),
        sizes=(len(change.old_payload), len(change.payload)),
        command=command(letter),
    )


async def _changes(before: str | None, after: str | None) -> Sequence[Line]:
    # On a thread: two long texts may take a while, and others want their pages.
    return await asyncio.to_thread(lambda: list(compared(before or "", after or "")))
