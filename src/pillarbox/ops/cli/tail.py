"""`pillarbox tail`: follow events as they move, for people who watch and for scripts that read lines."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import TYPE_CHECKING, get_args

import click

from pillarbox.admin.listing import EventFilter
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.text import plural
from pillarbox.ops.cli.output import as_json, clean, moment, print_json, print_line
from pillarbox.ops.cli.parameters import age, since_option
from pillarbox.ops.exports import listed_event, written
from pillarbox.ops.tailing import OVERLAP, What

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.tailing import Look, Move, Tail

_COLOURS = {"recorded": "", "retried": "yellow", "delivered": "green", "given up": "red", "gone": "dim"}
_BEHIND = "more than could be read in one look: the older ones come with the next"


@click.command()
@click.option("--type", "event_type", metavar="TYPE", help="Exactly this event type.")
@click.option("--key", help="Exactly this key, such as ORDER:42.")
@click.option("--destination", metavar="NAME", help="Only on their way to this destination.")
@click.option("--only", type=click.Choice(get_args(What)), multiple=True, help="Only this; may be given several times.")
@since_option
@click.option("--interval", type=age, default="1s", show_default=True, metavar="DURATION", help="Between two looks.")
@click.option(
    "--overlap",
    type=age,
    default=f"{OVERLAP:.0f}s",
    show_default=True,
    metavar="DURATION",
    help="How long a transaction may take whose events are still to be seen.",
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
    """Follow events as they move: recorded, retried, delivered, given up. Ends with Ctrl-C.

    Events are followed that are recorded from now on, or since a time. Each is shown once as recorded and once for
    each of its ends; retries between two looks are one line.

    \b
    Examples:
      pillarbox tail
      pillarbox tail --since 10m --only retried --only "given up"
      pillarbox tail --type order.placed --json
    """
    from pillarbox.ops.cli.working import with_shared_store
    from pillarbox.ops.tailing import Tail

    if interval <= 0:
        raise click.BadParameter("it must be longer than nothing", param_hint="--interval")
    wanted = EventFilter(event_type=event_type, key=key, destination=destination)

    async def follow(store: AdminStore) -> None:
        following = Tail(store, wanted, since=since, overlap=overlap)
        found = await following.look()
        while True:
            _show(found, only, as_json=as_json)
            await asyncio.sleep(interval)
            found = await _patient(following, interval)

    with_shared_store(follow)


async def _patient(following: Tail, interval: float) -> Look:
    """The next look that succeeds: nothing is missed by waiting."""
    told = False
    while True:
        try:
            return await following.look()
        except StoreUnavailableError as error:
            if not told:
                click.echo(f"pillarbox: {error}", err=True)
            told = True
            await asyncio.sleep(interval)


def _show(found: Look, only: tuple[str, ...], *, as_json: bool) -> None:
    if found.gap:
        click.echo(f"pillarbox: more than could be read: before {moment(found.gap)} nothing is shown", err=True)
        if as_json:
            print_json({"at": written(found.gap), "what": "gap"})
    elif found.behind:
        click.echo(f"pillarbox: {_BEHIND}", err=True)
    for move in found.moves:
        if not only or move.what in only:
            _print(move, as_json=as_json)


def _print(move: Move, *, as_json: bool) -> None:
    event = move.event
    if as_json:
        print_json({"at": written(move.at), "what": move.what} | listed_event(event))
        return
    tries = plural(event.retry_count, "try", "tries") if event.retry_count else ""
    error = event.last_error if move.what in ("retried", "given up") else ""
    cells = [moment(move.at), move.what, event.event_type, event.event_id, event.key, event.destination, tries, error]
    if sys.stdout.isatty():
        shown = [f"{move.what:<9}" if cell is move.what else clean(cell) for cell in cells if cell]
        print_line("  ".join(shown), colour=_COLOURS[move.what])
    else:
        click.echo("\t".join(clean(cell) for cell in cells))
