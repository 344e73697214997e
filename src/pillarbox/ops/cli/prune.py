"""`pillarbox prune`: drop what was delivered or given up long ago, by hand, and keep it in a file first if wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pillarbox.core.statistics import COUNTED
from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.parameters import retention

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.admin.archive import Stale
    from pillarbox.core.store import Retention
    from pillarbox.ops.archiving import ArchiveFile

KINDS = {
    "history": ("of history", "of history"),
    "dead": ("dead letter", "dead letters"),
    "receipts": ("receipt of the inbox", "receipts of the inbox"),
    "ledger": ("entry of the ledger", "entries of the ledger"),
    "audit": ("entry of the audit", "entries of the audit"),
}


def _ages(command: Callable[..., None]) -> Callable[..., None]:
    for name, (_, what) in reversed(KINDS.items()):
        told = "Delivered events" if name == "history" else what[0].upper() + what[1:]
        option = click.option(f"--{name}", type=retention, metavar="AGE", help=f"{told} older than this.")
        command = option(command)
    return command


@click.command()
@_ages
@click.option(
    "--archive",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write every delivered event and dead letter to this new file first: lines of JSON, compressed if it ends "
    "with .gz.",
)
@dry_run_option
@yes_option
@as_json
def prune(archive: Path | None, dry_run: bool, yes: bool, as_json: bool, **ages: float | None) -> None:
    """Drop what was done with longer ago than the settings keep it, or than AGE; `forever` keeps.

    What waits is never touched.

    \b
    Examples:
      pillarbox prune --dry-run
      pillarbox prune --history "3 days" --dead forever --yes
      pillarbox prune --archive history-2026-11.ndjson.gz --yes
    """
    from pillarbox.ops.archiving import ArchiveFile
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import operator, with_shared_store

    kept = _asked(current_settings().relay.config.retention.in_seconds, ages)
    stale = with_shared_store(lambda store: store.admin.archive.stale(kept))
    if any(stale) and not dry_run:
        confirm(f"Drop {_told(stale)}?", yes=yes)
        with nullcontext() if archive is None else ArchiveFile.create(archive) as file:
            archived = with_shared_store(lambda store: _drop(store, kept, stale, file, by=operator()))
        stale = stale if archive is None else stale._replace(history=archived.history, dead=archived.dead)
    if as_json:
        done = {"dropped": any(stale) and not dry_run, "dry_run": dry_run}
        print_json(stale._asdict() | done)
    elif not any(stale):
        click.echo("nothing is old enough")
    else:
        click.echo(f"{'would drop' if dry_run else 'dropped'} {_told(stale)}")


class Archived(NamedTuple):
    """How many rows went row by row."""

    history: int
    dead: int


async def _drop(store: AdminStore, kept: Retention, stale: Stale, file: ArchiveFile | None, *, by: str) -> Archived:
    from pillarbox.core.store import Retention, bites
    from pillarbox.ops.archiving import archive

    async for _ in bites(store.upkeep, Retention(audit=kept.audit)):
        pass
    # After the audit lost what is old, so that this stays; before anything else goes, so that nothing goes untold.
    await _enter(store, kept, stale, by=by)
    # Whole days at once where there are any and no file wants them; what is left of the last one goes row by row.
    rest = replace(kept, audit=None)
    at_once = rest if file is None else replace(rest, history=None, dead=None)
    async for _ in bites(store.upkeep, at_once):
        pass
    return Archived(
        history=0 if kept.history is None else await archive(store, "history", file, older=kept.history),
        dead=0 if kept.dead is None else await archive(store, "dead", file, older=kept.dead),
    )


async def _enter(store: AdminStore, kept: Retention, stale: Stale, *, by: str) -> None:
    """What is dropped, and what was older than how many seconds, as one entry of the audit."""
    gone = {kind: count for kind, count in stale._asdict().items() if count}
    older = {kind: getattr(kept, kind) for kind in gone}
    detail = {"dropped": gone, "older_than_seconds": older}
    await store.admin.audit.add("prune", ", ".join(gone), count=sum(gone.values()), detail=detail, by=by)


def _asked(kept: Retention, ages: Mapping[str, float | None]) -> Retention:
    given = {name: None if age == float("inf") else age for name, age in ages.items() if age is not None}
    return replace(kept, **given)


def _told(stale: Stale) -> str:
    """Each kind that there is something of, in words."""
    *most, last = [
        plural(count, *words, most=COUNTED) for words, count in zip(KINDS.values(), stale, strict=True) if count
    ]
    return f"{', '.join(most)} and {last}" if most else last
