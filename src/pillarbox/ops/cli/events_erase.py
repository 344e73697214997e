"""`pillarbox events erase`: delete all events of one aggregate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import FAILURE, NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json

if TYPE_CHECKING:
    from pillarbox.ops.erasure import AggregateEvents, Erased


@click.command("erase")
@click.option("--aggregate", required=True, metavar="TYPE:ID", help="The aggregate, such as CUSTOMER:42.")
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
    the erasure first. The audit names the aggregate by its type and a hash of TYPE:ID. Exits with 1 if pending events
    are left, because no relay is running.

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
    archived = {path: archive.lines_of(path, kind, one) for path in archives}
    total = sum(archived.values())
    if not (found or total):
        raise NotFoundError(f"{aggregate} has no events: pending, delivered, dead-lettered or archived")
    done: Erased | None = None
    if not dry_run:
        confirm(f"Erase {_describe(found, total)} of {aggregate}? They cannot be restored.", yes=yes)
        done = with_shared_store(lambda store: erasure.erase(store, aggregate, found, archived=total, by=operator()))
        for path, count in archived.items():
            if count:
                archive.erase_lines(path, kind, one)
    if as_json:
        print_json(_as_object(found, total, done, dry_run=dry_run))
    else:
        click.echo(f"{'would erase' if dry_run else 'erased'} {_describe(found, total)} of {aggregate}")
    if done is not None and done.requested:
        click.echo(f"pillarbox: {plural(done.requested, 'pending event')} left: requested from the relays", err=True)
        warn_without_relay()
        raise SystemExit(FAILURE)


def _describe(found: AggregateEvents, archived: int) -> str:
    counts = (
        plural(len(found.pending), "pending event"),
        plural(len(found.history), "delivered event"),
        plural(len(found.dead_letters), "dead letter"),
        plural(archived, "archived event"),
    )
    return ", ".join(counts)


def _as_object(found: AggregateEvents, archived: int, done: Erased | None, *, dry_run: bool) -> dict[str, object]:
    return {
        "pending": len(found.pending),
        "history": len(found.history),
        "dead_letters": len(found.dead_letters),
        "archived": archived,
        "requested": done.requested if done else 0,
        "dry_run": dry_run,
    }
