"""`pillarbox events erase`: delete all events of one aggregate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import FAILURE, NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json

if TYPE_CHECKING:
    from pillarbox.ops.erasure import Erased


@click.command("erase")
@click.option(
    "--aggregate",
    required=True,
    metavar="TYPE:ID",
    help="The aggregate, such as CUSTOMER:42; in the type, write \\: for a colon and \\\\ for a backslash.",
)
@click.option(
    "--archive",
    "archives",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An archive of `pillarbox prune` that is rewritten without the aggregate; repeatable.",
)
@dry_run_option
@yes_option
@as_json
def erase(aggregate: str, archives: tuple[Path, ...], dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase all events of one aggregate: pending, delivered and dead-lettered ones, and their lines in archives.

    Pending events are deleted by the relays that own their lanes and are never sent: deliver an event that announces
    the erasure first. The audit names the aggregate by its type and a hash of TYPE:ID. Exits with 1 if something is
    left: events, because no relay is running or they change meanwhile, or lines of an archive that are not JSON.

    \b
    Examples:
      pillarbox events erase --aggregate CUSTOMER:42 --dry-run
      pillarbox events erase --aggregate CUSTOMER:42 --archive history-2026-11.ndjson.gz --yes
    """
    from pillarbox.core.errors import ConfigurationError
    from pillarbox.ops import archive, erasure
    from pillarbox.ops.cli.store_access import operator, warn_without_relay, with_shared_store

    try:
        kind, one = erasure.check_aggregate(aggregate)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="--aggregate") from None
    found = with_shared_store(lambda store: erasure.find(store, aggregate))
    archived = {path: archive.events_of(path, kind, one) for path in archives}
    total = sum(each.count for each in archived.values())
    unreadable = {path: each.unreadable for path, each in archived.items() if each.unreadable}
    if not (found or total or unreadable):
        hint = "; write a colon in the type as \\:" if aggregate.count(":") > 1 else ""
        raise NotFoundError(f"{aggregate} has no events: pending, delivered, dead-lettered or archived{hint}")
    counted = found.counted()
    done: Erased | None = None
    if not dry_run and (found or total):
        confirm(f"Erase {_describe(counted, total)} of {aggregate}? They cannot be restored.", yes=yes)
        done = with_shared_store(lambda store: erasure.erase(store, aggregate, found, archived=total, by=operator()))
        for path, each in archived.items():
            if each.count:
                archive.erase_lines(path, kind, one)
    counts = done or counted
    if as_json:
        print_json(
            {
                "pending": counts.pending,
                "history": counts.history,
                "dead_letters": counts.dead_letters,
                "archived": total,
                "unreadable": sum(map(len, unreadable.values())),
                "requested": counts.requested,
                "dry_run": dry_run,
            }
        )
    elif dry_run or done is not None:
        click.echo(f"{'would erase' if dry_run else 'erased'} {_describe(counts, total)} of {aggregate}")
    for path, lines in unreadable.items():
        click.echo(
            f"pillarbox: {path}: line {lines[0]}{' and others are' if len(lines) > 1 else ' is'} no event and kept; "
            "look whether it contains the aggregate, and delete it",
            err=True,
        )
    if counts.requested:
        click.echo(
            f"pillarbox: {plural(counts.requested, 'event')} left, requested from the relays: erase again until "
            "nothing is left, because an event that is just being sent is delivered",
            err=True,
        )
        warn_without_relay()
    if not dry_run and (counts.requested or unreadable):
        raise SystemExit(FAILURE)


def _describe(counts: Erased, archived: int) -> str:
    parts = (
        plural(counts.pending, "pending event"),
        plural(counts.history, "delivered event"),
        plural(counts.dead_letters, "dead letter"),
        plural(archived, "archived event"),
    )
    return ", ".join(parts)
