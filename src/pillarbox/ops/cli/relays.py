"""`pillarbox relays`: list and drain relays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.exits import NotFoundError, confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_table, span

if TYPE_CHECKING:
    from pillarbox.admin.overview import RelayView


@click.group()
def relays() -> None:
    """List and drain relays."""


@relays.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List relays: running ones, and crashed ones that no other relay has taken over yet.

    \b
    Examples:
      pillarbox relays list
      pillarbox relays list --json
    """
    from pillarbox.ops import exports
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.relays import list_relays

    found = with_shared_store(list_relays)
    if as_json:
        print_json({"relays": [exports.relay(one.view, lanes=one.lanes) for one in found]})
    elif not found:
        click.echo("no relay is running: start one with `pillarbox relay`")
    else:
        print_table(
            ["relay", "id", "host", "version", "lanes", "in flight", "uptime", "lease"],
            [
                [
                    one.view.name,
                    one.view.id,
                    one.view.host,
                    one.view.version,
                    one.lanes,
                    one.view.in_flight,
                    span(one.view.age),
                    _lease(one.view),
                ]
                for one in found
            ],
        )


def _lease(relay: RelayView) -> str:
    if relay.draining:
        return "draining"
    if relay.lease <= 0:
        return "ended"
    return "stalled" if relay.stalled else f"{relay.lease:.1f} s"


@relays.command()
@click.argument("names", metavar="[RELAY]...", nargs=-1)
@yes_option
@as_json
def drain(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Drain relays, by id or name; without a name, all of them.

    A relay reads the request with its next heartbeat, finishes what is in flight, releases its lanes and exits. Its
    supervisor may start it again.

    \b
    Examples:
      pillarbox relays drain relay-a
      pillarbox relays drain --yes
    """
    from pillarbox.ops.cli.store_access import operator, with_shared_store
    from pillarbox.ops.relays import drain_relays

    if not names:
        confirm("Drain every relay?", yes=yes)
    asked = with_shared_store(lambda store: drain_relays(store, names, by=operator()))
    if not asked:
        raise NotFoundError(
            f"no relay is running with the id or name {', '.join(names)}: see `pillarbox relays list`"
            if names
            else "no relay is running"
        )
    if as_json:
        print_json({"requested": asked})
    else:
        click.echo(f"drain requested: {', '.join(asked)}")
