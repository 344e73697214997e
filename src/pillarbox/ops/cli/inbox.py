"""`pillarbox inbox`: who admits events, and what each consumer met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillarbox.core.statistics import COUNTED
from pillarbox.ops.cli.output import as_json, number, print_json, print_table, span
from pillarbox.ops.cli.parameters import limit_option

if TYPE_CHECKING:
    from pillarbox.admin.overview import ConsumerView


@click.group()
def inbox() -> None:
    """What consumers have admitted and met: list them.

    \b
    Example:
      pillarbox inbox list
    """


@inbox.command("list")
@limit_option
@as_json
def list_(limit: int, as_json: bool) -> None:
    """Consumers by name: how many events each remembers, and what it met in the last 24 hours.

    Handled, duplicates that were caught, failures after which an event comes again, events that were given up, the last
    error and its time. Figures are missing where nobody counted: an inbox that is asked by hand keeps receipts only.
    `pillarbox prune` drops receipts that are older than they are kept.

    \b
    Examples:
      pillarbox inbox list
      pillarbox inbox list --json
    """
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import with_shared_store
    from pillarbox.ops.inbox import look

    retention = current_settings().relay.config.retention.in_seconds.receipts
    found = with_shared_store(lambda store: look(store, retention=retention, limit=limit))
    if as_json:
        print_json(found.as_json())
        return
    if not found.consumers:
        click.echo("no consumer has admitted anything here: run one with `pillarbox consume MODULE:OBJECT`")
        return
    print_table(
        [
            "consumer",
            "receipts",
            "handled 24 h",
            "duplicates 24 h",
            "failed 24 h",
            "given up 24 h",
            "last failure",
            "last error",
        ],
        [_row(one) for one in found.consumers],
    )
    if found.retention is not None and found.stale:
        old = number(found.stale, most=COUNTED)
        click.echo(f"receipts are kept for {span(found.retention)}, {old} are older: `pillarbox prune`", err=True)


def _row(one: ConsumerView) -> list[object]:
    tallied = (one.handled, one.repeated, one.failed, one.given_up)
    figures = ["" if count is None else number(count) for count in tallied]
    return [one.name, number(one.receipts, most=COUNTED), *figures, one.last_failed_at, one.last_error]
