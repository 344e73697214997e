"""`pillarbox relays`: who works, and asking them to drain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.exits import NotFound, confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_table, span

if TYPE_CHECKING:
    from pillarbox.admin.overview import RelayView


@click.group()
def relays() -> None:
    """The relays of this store: list them, ask them to drain."""


@relays.command("list")
@as_json
def list_(as_json: bool) -> None:
    """Every relay that lives, or whose death nobody has noticed yet.

    \b
    Examples:
      pillarbox relays list
      pillarbox relays list --json
    """
    from pillarbox.ops import steering
    from pillarbox.ops.cli.working import with_shared_store

    found = with_shared_store(steering.relays)
    if as_json:
        rows = [
            {
                "id": one.view.id,
                "name": one.view.name,
                "host": one.view.host,
                "version": one.view.version,
                "lanes": one.lanes,
                "in_hand": one.view.in_hand,
                "lease_seconds": round(one.view.lease, 3),
                "up_seconds": round(one.view.age, 3),
                "draining": one.view.draining,
                "stalled": one.view.stalled or None,
            }
            for one in found
        ]
        print_json({"relays": rows})
    elif not found:
        click.echo("no relay is running: start one with `pillarbox relay`")
    else:
        print_table(
            ["relay", "id", "host", "version", "lanes", "in hand", "up", "lease"],
            [
                [
                    one.view.name,
                    one.view.id,
                    one.view.host,
                    one.view.version,
                    one.lanes,
                    one.view.in_hand,
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
    """Ask relays, by id or name, to finish what they have in hand and end; without a name, all of them.

    They hear of it with their next heartbeat. Whoever supervises them may start them again.

    \b
    Examples:
      pillarbox relays drain relay-a
      pillarbox relays drain --yes
    """
    from pillarbox.ops import steering
    from pillarbox.ops.cli.working import operator, with_shared_store

    if not names:
        confirm("Drain every relay?", yes=yes)
    asked = with_shared_store(lambda store: steering.drain(store, names, by=operator()))
    if not asked:
        raise NotFound(f"no relay lives by the name of {', '.join(names)}" if names else "no relay is running")
    if as_json:
        print_json({"asked": asked})
    else:
        click.echo(f"asked to drain: {', '.join(asked)}")
