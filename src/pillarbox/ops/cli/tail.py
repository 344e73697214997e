"""`pillarbox tail`: follow events as they are recorded, retried and delivered."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import TYPE_CHECKING, get_args

import click

from pillarbox.admin.listing import EventFilter
from pillarbox.core.clock import timestamp
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.text import plural
from pillarbox.ops.cli.output import as_json, clean, print_json, print_line
from pillarbox.ops.cli.parameters import age, since_option
from pillarbox.ops.event_tail import OVERLAP, ChangeKind
from pillarbox.ops.exports import listed_event, written

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.event_tail import Change, Tail, TailResult

_COLOURS = {"recorded": "", "retried": "yellow", "delivered": "green", "dead-lettered": "red", "gone": "dim"}
_INCOMPLETE = "more new events than one query reads: the older ones follow with the next queries"


@click.command()
@click.option("--type", "event_type", metavar="TYPE", help="Only this event type.")
@click.option("--key", help="Only this key, such as ORDER:42.")
@click.option("--destination", metavar="NAME", help="Only this destination.")
@click.option("--only", type=click.Choice(get_args(ChangeKind)), multiple=True, help="Only this change; repeatable.")
@since_option
@click.option("--interval", type=age, default="1s", show_default=True, metavar="DURATION", help="Time between queries.")
@click.option(
    "--overlap",
    type=age,
    default=f"{OVERLAP:.0f}s",
    show_default=True,
    metavar="DURATION",
    help="Show events of transactions that took no longer than this.",
)
@as_json
def tail(
    event_type: str | None,
    key: str | None,
    destination: str | None,
    only: tuple[str, ...],
    since: datetime | None,
    interval: float,
    overlap: float,
    as_json: bool,
) -> None:
    """Follow events as they are recorded, retried, delivered and dead-lettered, until Ctrl-C.

    The command follows events that are recorded from now on, or since a time. Each event is shown once as recorded and
    once for each final state; several retries between two queries are one line.

    \b
    Examples:
      pillarbox tail
      pillarbox tail --since 10m --only retried --only dead-lettered
      pillarbox tail --type order.placed --json
    """
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.event_tail import Tail

    if interval <= 0:
        raise click.BadParameter("it must be longer than zero", param_hint="--interval")
    wanted = EventFilter(event_type=event_type, key=key, destination=destination)

    async def follow(store: AdminStore) -> None:
        following = Tail(store, wanted, since=since, overlap=overlap)
        found = await following.poll()
        while True:
            _show(found, only, as_json=as_json)
            await asyncio.sleep(interval)
            found = await _poll(following, interval)

    with_shared_store(follow)


async def _poll(following: Tail, interval: float) -> TailResult:
    """Query until the store responds. No event is missed in the meantime."""
    told = False
    while True:
        try:
            return await following.poll()
        except StoreUnavailableError as error:
            if not told:
                click.echo(f"pillarbox: {error}", err=True)
            told = True
            await asyncio.sleep(interval)


def _show(found: TailResult, only: tuple[str, ...], *, as_json: bool) -> None:
    if found.gap:
        click.echo(f"pillarbox: too many events to read: events before {timestamp(found.gap)} are not shown", err=True)
        if as_json:
            print_json({"at": written(found.gap), "change": "gap"})
    elif found.incomplete:
        click.echo(f"pillarbox: {_INCOMPLETE}", err=True)
    for change in found.changes:
        if not only or change.kind in only:
            _print(change, as_json=as_json)


def _print(change: Change, *, as_json: bool) -> None:
    event = change.event
    if as_json:
        print_json({"at": written(change.at), "change": change.kind} | listed_event(event))
        return
    retries = plural(event.retry_count, "retry", "retries") if event.retry_count else ""
    error = event.last_error if change.kind in ("retried", "dead-lettered") else ""
    cells = [
        timestamp(change.at),
        change.kind,
        event.event_type,
        event.event_id,
        event.key,
        event.destination,
        retries,
        error,
    ]
    if sys.stdout.isatty():
        shown = [f"{change.kind:<13}" if cell is change.kind else clean(cell) for cell in cells if cell]
        print_line("  ".join(shown), colour=_COLOURS[change.kind])
    else:
        click.echo("\t".join(clean(cell) for cell in cells))
