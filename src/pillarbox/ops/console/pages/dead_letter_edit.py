"""Edit and retry: an operator corrects the payload or headers of a dead letter and sends it again.

Invariant: a user edits only what that user may see. Saving a payload without its masked parts would destroy them, so
the console refuses to edit a dead letter with masked parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from pillarbox.admin.dead_letters import DeadLetterEdit
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import RecordError
from pillarbox.ops.console import command_line, payloads
from pillarbox.ops.console.access import Role
from pillarbox.ops.console.dead_letter_form import DeadLetterForm, DiffLine, diff_lines
from pillarbox.ops.console.filters import whole
from pillarbox.ops.console.request import ConsoleRequest, RequestError, check_role


async def edit(request: ConsoleRequest) -> Response:
    """Show the form with the current content."""
    dead_letter = await dead_letter_of(request, request.query.get("dead_letter_id"), gone=404)
    return await _form(request, dead_letter, DeadLetterForm.of(dead_letter))


async def decide(request: ConsoleRequest) -> Response:
    """Show the changes for confirmation, or send them with action=send; invalid input returns to the form."""
    dead_letter = await dead_letter_of(request, request.form.get("dead_letter_id"), gone=409)
    typed, action = DeadLetterForm.of(dead_letter).filled(request.form), request.form.get("action")
    if action == "edit":
        return await _form(request, dead_letter, typed)
    try:
        change = typed.amendment(dead_letter, max_payload=request.context.max_payload)
    except RecordError as error:
        return await _form(request, dead_letter, typed, wrong=str(error))
    if not change.changes:
        return await _form(
            request,
            dead_letter,
            typed,
            wrong="Nothing was changed. To retry the event unchanged, use Retry on its page.",
        )
    if action == "send":
        await amend(request, dead_letter, change)
        said = f"Dead letter {dead_letter.dead_letter_id} retried with edited content."
        return request.redirect("/event", said, id=dead_letter.event_id, destination=dead_letter.destination)
    return await _confirm(request, dead_letter, typed, change)


async def dead_letter_of(request: ConsoleRequest, number: object, *, gone: int) -> EventDetail:
    """Return a dead letter to edit. Raises RequestError without permission to edit it, or with status `gone`."""
    check_role(request.user, Role.OPERATOR)
    wanted = whole(str(number), "dead_letter_id", default=0, most=2**63 - 1)
    for dead_letter in await request.store.admin.dead_letters.details([wanted]):
        if reason := await cannot_edit(request, dead_letter):
            raise RequestError(403, reason)
        return dead_letter
    raise RequestError(
        gone,
        f"Dead letter {wanted} no longer exists: it was retried or discarded; the audit shows by whom. "
        "Nothing was changed.",
    )


async def cannot_edit(request: ConsoleRequest, dead_letter: EventDetail) -> str:
    """Say why the user may not edit a dead letter; '' if it can be edited."""
    if not request.user.payloads:
        return "Your user lacks the right to see payloads, and therefore to edit them."
    if await asyncio.to_thread(payloads.hides, dead_letter, request.context.masks):
        return (
            "Masking rules hide a part of this event, and saving it here would destroy that part. "
            f"Edit it on the command line: `{command(dead_letter)}`"
        )
    return ""


async def amend(request: ConsoleRequest, dead_letter: EventDetail, change: DeadLetterEdit) -> None:
    """Retry the dead letter with the change. Raises RequestError if it changed concurrently."""
    dead_letters, number = request.store.admin.dead_letters, dead_letter.dead_letter_id or 0
    if not await dead_letters.edit(number, payload=change.payload, headers=change.headers, by=request.user.name):
        raise RequestError(
            409,
            f"Dead letter {number} was skipped: event {dead_letter.event_id!r} is already pending for "
            f"{dead_letter.destination!r}, or changed concurrently. Check the event before you retry.",
        )


def command(dead_letter: EventDetail) -> str:
    """Return the equivalent CLI command."""
    return command_line.command("dead edit", dead_letter.event_id, {"dead-letter": dead_letter.dead_letter_id})


async def _form(
    request: ConsoleRequest, dead_letter: EventDetail, form: DeadLetterForm, *, wrong: str = ""
) -> Response:
    return await request.render(
        "dead_edit.html",
        dead_letter=dead_letter,
        form=form,
        first=DeadLetterForm.of(dead_letter),
        largest=payloads.SHOWN,
        wrong=wrong,
        command=command(dead_letter),
    )


async def _confirm(
    request: ConsoleRequest, dead_letter: EventDetail, typed: DeadLetterForm, change: DeadLetterEdit
) -> Response:
    before = DeadLetterForm.of(dead_letter)
    after = DeadLetterForm.of(dead_letter._replace(payload=change.payload))
    return await request.render(
        "dead_edit_confirm.html",
        dead_letter=dead_letter,
        kept={"dead_letter_id": dead_letter.dead_letter_id}
        | {name: text for name, text in typed._asdict().items() if text is not None},
        payload=await _changes(before.payload, after.payload or typed.payload),
        headers=await _changes(before.headers, typed.headers),
        sizes=(len(change.old_payload), len(change.payload)),
        command=command(dead_letter),
    )


async def _changes(before: str | None, after: str | None) -> Sequence[DiffLine]:
    # In a thread: comparing two long texts takes time and would block other requests.
    return await asyncio.to_thread(lambda: list(diff_lines(before or "", after or "")))
