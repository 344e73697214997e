"""`pillarbox inbox`: who has receipts, and how many."""

from __future__ import annotations

import click

from pillarbox.core.overview import COUNTED
from pillarbox.ops.cli.output import as_json, number, print_json, print_table
from pillarbox.ops.cli.parameters import limit_option


@click.group()
def inbox() -> None:
    """What consumers have admitted: list them.

    \b
    Example:
      pillarbox inbox list
    """


@inbox.command("list")
@limit_option
@as_json
def list_(limit: int, as_json: bool) -> None:
    """Consumers by name, each with how many events it has admitted and still remembers.

    Duplicates that were caught and events that failed are in a consumer's own metrics. `pillarbox prune --dry-run` says
    how many receipts are old enough to go.

    \b
    Example:
      pillarbox inbox list --json
    """
    from pillarbox.ops.cli.working import with_shared_store

    found = with_shared_store(lambda store: store.inspection.consumers(limit=limit))
    if as_json:
        print_json({"consumers": [consumer._asdict() for consumer in found]})
    elif not found:
        click.echo("no consumer has receipts here")
    else:
        print_table(["consumer", "receipts"], [[one.name, number(one.receipts, most=COUNTED)] for one in found])
