"""`pillarbox dead edit`: retry a dead letter with another payload or other headers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pillarbox.core.errors import CommandError
from pillarbox.core.message import Status
from pillarbox.ops.cli.exits import NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.parameters import NUMBER, header

if TYPE_CHECKING:
    from pillarbox.admin.dead_letters import DeadLetterEdit
    from pillarbox.admin.listing import EventDetail, EventReport


@click.command()
@click.argument("event_id")
@click.option("--destination", metavar="NAME", help="Dead letter for this destination, if there are several.")
@click.option(
    "--dead-letter", "number", type=NUMBER, metavar="NUMBER", help="Dead letter with this number, if there are several."
)
@click.option("--payload", "source", type=click.File("rb"), metavar="FILE", help="New payload; - is standard input.")
@click.option("--header", "headers", type=header, multiple=True, metavar="NAME=VALUE", help="Set a header; repeatable.")
@click.option("--remove-header", "removed", multiple=True, metavar="NAME", help="Remove a header; repeatable.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the original dead letter to this new file first, as one line of JSON.",
)
@dry_run_option
@yes_option
@as_json
def edit(
    event_id: str,
    destination: str | None,
    number: int | None,
    source: Any,
    headers: tuple[tuple[str, str], ...],
    removed: tuple[str, ...],
    keep: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Retry a dead letter with another payload or other headers.

    Without --payload, --header and --remove-header the command opens the payload in $EDITOR. It validates the result
    like a new event, and appends it to the end of its key with its attempts reset to zero. The header `amended` has the
    SHA-256 of the old payload; the audit log has the hash and the size of both payloads, not the content. --keep writes
    the original to a file.

    \b
    Examples:
      pillarbox dead edit evt-001
      pillarbox dead edit evt-001 --payload corrected.json --keep evt-001.before.json
      pillarbox dead edit evt-001 --header tenant=acme --remove-header debug --dry-run
    """
    from pillarbox.ops import dead_letter_edit
    from pillarbox.ops.archive import ArchiveFile
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import operator, with_shared_store

    story = with_shared_store(lambda store: store.admin.events.show(event_id))
    dead_letter, found = _chosen(story, event_id, destination=destination, number=number)
    payload = None if source is None else source.read()
    if source is None and not headers and not removed:
        payload = _edited(dead_letter)
    limit = current_settings().store.max_payload
    change = dead_letter_edit.amendment(
        dead_letter, payload=payload, headers=dict(headers), removed=removed, max_payload=limit
    )
    done = False
    if change.changes and not dry_run:
        confirm(f"Retry it with {_describe(change)}? {_original(keep)}", yes=yes)
        with nullcontext() if keep is None else ArchiveFile.create(keep) as file:
            if file is not None:
                file.write([dead_letter])
            content: Mapping[str, Any] = {"payload": change.payload, "headers": change.headers}
            done = with_shared_store(lambda store: store.admin.dead_letters.edit(found, **content, by=operator()))
        if not done:
            raise CommandError(
                f"dead letter {found} was not retried: event {event_id!r} is already pending for "
                f"{dead_letter.destination!r}, or the dead letter was changed concurrently; see `pillarbox events show`"
            )
    if as_json:
        facts = {"event_id": event_id, "destination": dead_letter.destination, "dead_letter_id": found}
        print_json(facts | change.summary | {"changed": change.changes, "done": done, "dry_run": dry_run})
    elif not change.changes:
        click.echo("no changes; `pillarbox dead retry` retries it unchanged")
    else:
        click.echo(f"{'would retry' if dry_run else 'retried'} dead letter {found} with {_describe(change)}")


def _chosen(
    story: EventReport, event_id: str, *, destination: str | None, number: int | None
) -> tuple[EventDetail, int]:
    """Return the selected dead letter and its number."""
    dead_lettered = [detail for detail in story.events if detail.status is Status.FAILED]
    fitting = [
        (detail, detail.dead_letter_id)
        for detail in dead_lettered
        if detail.dead_letter_id is not None
        and destination in (None, detail.destination)
        and number in (None, detail.dead_letter_id)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        told = ", ".join(f"{dead_letter} for {detail.destination!r}" for detail, dead_letter in fitting)
        raise click.UsageError(f"Event {event_id!r} has several dead letters: {told}. Select one with --dead-letter.")
    if any(detail.dead_letter_id is None for detail in dead_lettered):
        raise NotFoundError(
            f"event {event_id!r} blocks its key and is not a dead letter: use `pillarbox dead retry` or `dead discard`"
        )
    raise NotFoundError(f"event {event_id!r} has no such dead letter: see `pillarbox events show`")


def _edited(dead_letter: EventDetail) -> bytes | None:
    """Open the payload in an editor; returns the edited payload, or None if it was not saved."""
    from pillarbox.core.payload import is_json
    from pillarbox.ops.dead_letter_edit import drafted

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("There is no terminal for an editor: give --payload FILE, --header or --remove-header.")
    draft = drafted(dead_letter)
    saved = click.edit(draft.shown, extension=".json" if is_json(dead_letter.content_type) else ".txt")
    return None if saved is None else draft.saved(saved)


def _describe(change: DeadLetterEdit) -> str:
    """Describe the changes."""
    summary = change.summary
    parts: list[str] = []
    if change.payload != change.old_payload:
        parts.append(f"another payload ({len(change.payload):,} bytes instead of {len(change.old_payload):,})")
    if summary["headers"]["set"]:
        parts.append(f"headers {', '.join(summary['headers']['set'])}")
    if summary["headers"]["removed"]:
        parts.append(f"without headers {', '.join(summary['headers']['removed'])}")
    return " and ".join(parts)


def _original(keep: Path | None) -> str:
    if keep is not None:
        return f"The original is written to {keep} first."
    return "The original is not kept, only its hash: --keep FILE writes it to a file."
