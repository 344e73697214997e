"""`pillarbox inbox`: statistics of each consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillarbox.core.statistics import COUNTED
from pillarbox.ops.cli.output import as_json, number, print_json, print_table, span
from pillarbox.ops.cli.parameters import limit_option

if TYPE_CHECKING:
    from pillarbox.admin.overview import ConsumerView
    from pillarbox.ops.inbox import InboxView


@click.group()
def inbox() -> None:
    """Show per-consumer inbox statistics.

    \b
    Example:
      pillarbox inbox list
    """


@inbox.command("list")
@limit_option
@as_json
def list_(limit: int, as_json: bool) -> None:
    """List consumers by name, with their inbox records and their statistics of the last 24 hours.

    The statistics are processed events, duplicates, failures that were retried, dead letters, and the last error with
    its time. A consumer that calls the inbox without `Consumer` has no statistics, only inbox records.
    `pillarbox prune` deletes inbox records past their retention period: those to be pruned.

    \b
    Examples:
      pillarbox inbox list
      pillarbox inbox list --json
    """
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.inbox import read_inbox

    retention = current_settings().relay.config.retention.in_seconds.inbox
    found = with_shared_store(lambda store: read_inbox(store, retention=retention, limit=limit))
    if as_json:
        print_json(found.as_json())
        return
    if not found.consumers:
        click.echo("no consumer has processed an event yet: run one with `pillarbox consume MODULE:OBJECT`")
        return
    print_table(
        [
            "consumer",
            "inbox records",
            "to be pruned",
            "processed 24 h",
            "duplicates 24 h",
            "failures 24 h",
            "dead letters 24 h",
            "last failure",
            "last error",
        ],
        [_row(one, found) for one in found.consumers],
    )
    if found.retention is not None and found.expired:
        old = number(found.expired, most=COUNTED)
        click.echo(f"inbox records are kept for {span(found.retention)}; {old} are older: `pillarbox prune`", err=True)


def _row(one: ConsumerView, found: InboxView) -> list[object]:
    expired = found.expired_of(one.name)
    pruned = "" if expired is None else f"{'' if found.is_complete else '≥ '}{number(expired)}"
    counts = (one.processed, one.duplicates, one.failures, one.dead_lettered)
    shown = ["" if count is None else number(count) for count in counts]
    return [one.name, number(one.records, most=COUNTED), pruned, *shown, one.last_failed_at, one.last_error]
