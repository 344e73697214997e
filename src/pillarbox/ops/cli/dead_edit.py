"""`pillarbox dead edit`: a dead letter goes out again with a payload or headers that a person put right."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pillarbox.core.errors import PillarboxError
from pillarbox.core.message import Status
from pillarbox.ops.cli.exits import NotFound, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.parameters import NUMBER, header

if TYPE_CHECKING:
    from pillarbox.admin.dead_letters import Amendment
    from pillarbox.admin.listing import EventDetail, Story


@click.command()
@click.argument("event_id")
@click.option("--destination", metavar="NAME", help="The letter for this destination, where there are several.")
@click.option(
    "--letter", "number", type=NUMBER, metavar="NUMBER", help="The letter with this number, where there are several."
)
@click.option(
    "--payload", "source", type=click.File("rb"), metavar="FILE", help="The new payload; - is standard input."
)
@click.option("--header", "headers", type=header, multiple=True, metavar="NAME=VALUE", help="Set a header.")
@click.option("--remove-header", "removed", multiple=True, metavar="NAME", help="Take a header away.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the letter as it was to this new file first: a line of JSON.",
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
    """Send a dead letter again with another payload or other headers.

    Without --payload, --header and --remove-header the payload is opened in $EDITOR. What comes out of it is checked as
    if it were recorded, and goes to the end of its key with its attempts at zero. It says so by the header `amended`,
    which has the SHA-256 of the payload that it had; the audit has the hash and the size of both, and never the
    content. --keep writes what it was to a file.

    \b
    Examples:
      pillarbox dead edit evt-001
      pillarbox dead edit evt-001 --payload corrected.json --keep evt-001.before.json
      pillarbox dead edit evt-001 --header tenant=acme --remove-header debug --dry-run
    """
    from pillarbox.ops import amending
    from pillarbox.ops.archiving import ArchiveFile
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import operator, with_shared_store

    story = with_shared_store(lambda store: store.admin.events.show(event_id))
    letter, found = _chosen(story, event_id, destination=destination, number=number)
    payload = None if source is None else source.read()
    if source is None and not headers and not removed:
        payload = _edited(letter)
    limit = current_settings().store.max_payload
    change = amending.amendment(letter, payload=payload, headers=dict(headers), removed=removed, max_payload=limit)
    done = False
    if change.changes and not dry_run:
        confirm(f"Send it again with {_told(change)}? {_kept(change, keep)}", yes=yes)
        with nullcontext() if keep is None else ArchiveFile.create(keep) as file:
            if file is not None:
                file.write([letter])
            content: Mapping[str, Any] = {"payload": change.payload, "headers": change.headers}
            done = with_shared_store(lambda store: store.admin.dead_letters.edit(found, **content, by=operator()))
        if not done:
            raise PillarboxError(
                f"letter {found} stays: event {event_id!r} already waits for {letter.destination!r}, "
                "or somebody was faster; see `pillarbox events show`"
            )
    if as_json:
        facts = {"event_id": event_id, "destination": letter.destination, "letter": found}
        print_json(facts | change.told | {"changed": change.changes, "done": done, "dry_run": dry_run})
    elif not change.changes:
        click.echo("nothing would change; `pillarbox dead retry` sends it as it is")
    else:
        click.echo(f"{'would send' if dry_run else 'sent'} letter {found} again with {_told(change)}")


def _chosen(story: Story, event_id: str, *, destination: str | None, number: int | None) -> tuple[EventDetail, int]:
    """The one letter that is meant, and its number."""
    given_up = [detail for detail in story.events if detail.status is Status.FAILED]
    fitting = [
        (detail, detail.letter)
        for detail in given_up
        if detail.letter is not None and destination in (None, detail.destination) and number in (None, detail.letter)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        told = ", ".join(f"{letter} for {detail.destination!r}" for detail, letter in fitting)
        raise click.UsageError(f"There are several letters of {event_id!r}: {told}. Choose one with --letter.")
    if any(detail.letter is None for detail in given_up):
        raise NotFound(
            f"{event_id!r} holds its key and is no dead letter: discard it, or send it as it is, with `pillarbox dead`"
        )
    raise NotFound(f"no such dead letter of an event {event_id!r}: see `pillarbox events show`")


def _edited(letter: EventDetail) -> bytes | None:
    """What a person makes of the payload; None if it was not saved."""
    from pillarbox.core.text import is_json
    from pillarbox.ops.amending import drafted

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("There is no terminal for an editor: give --payload FILE, --header or --remove-header.")
    draft = drafted(letter)
    saved = click.edit(draft.shown, extension=".json" if is_json(letter.content_type) else ".txt")
    return None if saved is None else draft.saved(saved)


def _told(change: Amendment) -> str:
    """What changes, for people."""
    told = change.told
    parts = []
    if change.payload != change.old_payload:
        parts.append(f"another payload ({len(change.payload):,} bytes instead of {len(change.old_payload):,})")
    if told["headers"]["set"]:
        parts.append(f"headers {', '.join(told['headers']['set'])}")
    if told["headers"]["removed"]:
        parts.append(f"without headers {', '.join(told['headers']['removed'])}")
    return " and ".join(parts)


def _kept(change: Amendment, keep: Path | None) -> str:
    if keep is not None:
        return f"What it was is written to {keep} first."
    return "What it was is kept nowhere, only its hash: --keep FILE keeps it."
