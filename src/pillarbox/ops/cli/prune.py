"""`pillarbox prune`: drop what was delivered or given up long ago, by hand, and keep it in a file first if wanted."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pillarbox.core.duration import seconds
from pillarbox.core.overview import COUNTED
from pillarbox.ops.cli.exits import confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, number, print_json
from pillarbox.ops.cli.parameters import retention

if TYPE_CHECKING:
    from pillarbox.core.archive import Stale
    from pillarbox.core.store import Store
    from pillarbox.ops.archiving import ArchiveFile


class Ages(NamedTuple):
    """In seconds; None keeps for ever."""

    history: float | None
    dead: float | None


@click.command()
@click.option(
    "--history", type=retention, metavar="AGE", help="Delivered events older than this; default: the settings."
)
@click.option("--dead", type=retention, metavar="AGE", help="Dead letters older than this; default: the settings.")
@click.option(
    "--archive",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write every row to this new file before it is dropped: lines of JSON, compressed if it ends with .gz.",
)
@dry_run_option
@yes_option
@as_json
def prune(
    history: float | None, dead: float | None, archive: Path | None, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Drop delivered events and dead letters that are older than the settings keep them, or than AGE; `forever` keeps.

    What waits is never touched.

    \b
    Examples:
      pillarbox prune --dry-run
      pillarbox prune --history "3 days" --dead forever --yes
      pillarbox prune --archive history-2026-11.ndjson.gz --yes
    """
    from pillarbox.ops.archiving import ArchiveFile
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import with_shared_store

    settings = current_settings().store
    ages = Ages(history=_age(history, settings.history_for), dead=_age(dead, settings.dead_for))
    stale = with_shared_store(lambda store: store.archive.stale(history=ages.history, dead=ages.dead))
    if any(stale) and not dry_run:
        confirm(f"Drop {_told(stale)}?", yes=yes)
        with nullcontext() if archive is None else ArchiveFile.create(archive) as file:
            archived = with_shared_store(lambda store: _drop(store, ages, file))
        stale = stale if archive is None else archived
    if as_json:
        done = {"dropped": any(stale) and not dry_run, "dry_run": dry_run}
        print_json(stale._asdict() | done)
    elif not any(stale):
        click.echo("nothing is old enough")
    else:
        click.echo(f"{'would drop' if dry_run else 'dropped'} {_told(stale)}")


async def _drop(store: Store, ages: Ages, file: ArchiveFile | None) -> Stale:
    from pillarbox.core.archive import Stale
    from pillarbox.ops.archiving import archive

    if file is None:
        # Whole days at once where there are any; what is left of the last one goes row by row.
        while await store.upkeep.prune(history=ages.history, dead=ages.dead):
            pass
    return Stale(
        history=0 if ages.history is None else await archive(store, "history", file, older=ages.history),
        dead=0 if ages.dead is None else await archive(store, "dead", file, older=ages.dead),
    )


def _age(given: float | None, setting: str | None) -> float | None:
    """In seconds; None keeps for ever."""
    if given is None:
        return None if setting is None else seconds(setting)
    return None if given == float("inf") else given


def _told(stale: Stale) -> str:
    return f"{number(stale.history, most=COUNTED)} of history and {number(stale.dead, most=COUNTED)} dead letters"
