"""`pillarbox prune`: delete data past its retention period, optionally after archiving it in a file."""

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
    from pillarbox.admin.archive import ExpiredCounts
    from pillarbox.core.store import Retention
    from pillarbox.ops.archive import ArchiveFile

KINDS = {
    "history": ("delivered event", "delivered events"),
    "dead": ("dead letter", "dead letters"),
    "inbox": ("inbox record", "inbox records"),
    "ledger": ("ledger entry", "ledger entries"),
    "audit": ("audit entry", "audit entries"),
}


def _ages(command: Callable[..., None]) -> Callable[..., None]:
    for name, (_, kind) in reversed(KINDS.items()):
        text = f"Delete {kind} older than AGE; default: relay.retention.{name}."
        command = click.option(f"--{name}", name, type=retention, metavar="AGE", help=text)(command)
    return command


@click.command()
@_ages
@click.option(
    "--archive",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write every delivered event and dead letter to this new file first: one line of JSON each, compressed if the "
    "name ends with .gz.",
)
@dry_run_option
@yes_option
@as_json
def prune(archive: Path | None, dry_run: bool, yes: bool, as_json: bool, **ages: float | None) -> None:
    """Delete data past its retention period.

    AGE, such as "3 days", replaces the retention of the settings; 0s deletes all, `forever` nothing. Pending events are
    never deleted.

    \b
    Examples:
      pillarbox prune --dry-run
      pillarbox prune --history "3 days" --dead forever --yes
      pillarbox prune --archive history-2026-11.ndjson.gz --yes
    """
    from pillarbox.ops.archive import ArchiveFile
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import operator, with_shared_store

    kept = _asked(current_settings().relay.config.retention.in_seconds, ages)
    stale = with_shared_store(lambda store: store.admin.archive.count_expired(kept))
    if any(stale) and not dry_run:
        confirm(f"Delete {_describe(stale)}?", yes=yes)
        with nullcontext() if archive is None else ArchiveFile.create(archive) as file:
            archived = with_shared_store(lambda store: _delete(store, kept, stale, file, by=operator()))
        stale = stale if archive is None else stale._replace(history=archived.history, dead=archived.dead)
    if as_json:
        print_json(stale._asdict() | {"deleted": any(stale) and not dry_run, "dry_run": dry_run})
    elif not any(stale):
        click.echo("no data is past its retention period")
    else:
        click.echo(f"{'would delete' if dry_run else 'deleted'} {_describe(stale)}")


class Archived(NamedTuple):
    """How many rows were deleted one by one."""

    history: int
    dead: int


async def _delete(
    store: AdminStore, kept: Retention, stale: ExpiredCounts, file: ArchiveFile | None, *, by: str
) -> Archived:
    from pillarbox.core.store import Retention
    from pillarbox.ops.archive import archive
    from pillarbox.pruning import prune_in_batches

    async for _ in prune_in_batches(store.pruning, Retention(audit=kept.audit)):
        pass
    # The entry is added after old entries are deleted, so that it stays, and before other data is deleted, so that no
    # deletion is missing in the audit log.
    await _audit(store, kept, stale, by=by)
    # Without an archive, whole partitions are dropped; the rest of the last day is deleted row by row.
    rest = replace(kept, audit=None)
    at_once = rest if file is None else replace(rest, history=None, dead=None)
    async for _ in prune_in_batches(store.pruning, at_once):
        pass
    return Archived(
        history=0 if kept.history is None else await archive(store, "history", file, older=kept.history),
        dead=0 if kept.dead is None else await archive(store, "dead", file, older=kept.dead),
    )


async def _audit(store: AdminStore, kept: Retention, stale: ExpiredCounts, *, by: str) -> None:
    """Add one audit entry with the count and the minimum age in seconds of each kind."""
    gone = {kind: count for kind, count in stale._asdict().items() if count}
    older = {kind: getattr(kept, kind) for kind in gone}
    detail = {"deleted": gone, "older_than_seconds": older}
    await store.admin.audit.add("prune", ", ".join(gone), count=sum(gone.values()), detail=detail, by=by)


def _asked(kept: Retention, ages: Mapping[str, float | None]) -> Retention:
    given = {name: None if age == float("inf") else age for name, age in ages.items() if age is not None}
    return replace(kept, **given)


def _describe(stale: ExpiredCounts) -> str:
    """Describe the counts that are not zero."""
    *most, last = [
        plural(count, *words, limit=COUNTED) for words, count in zip(KINDS.values(), stale, strict=True) if count
    ]
    return f"{', '.join(most)} and {last}" if most else last
